package estimate_test

import "github.com/quorlease/quorlease/client/gateway/estimate"

// cloudShapes are bodies of Gemini, Vertex and Bedrock, none of which names its model.
func cloudShapes() []shape {
	request := func(most, messages, images, files int64) estimate.Request {
		return estimate.Request{MaxOutput: most, Choices: 1, Messages: messages, Images: images, Files: files}
	}
	return []shape{
		{
			"contents_spelt_otherwise", `{"contents":[{"role":"user","parts":[{"text":"` + text + `","thought_signature":"` +
				image + `"}]}],"generation_config":{"max_output_tokens":90,"temperature":0}}`,
			request(90, 1, 0, 0), 1, 3 + 3,
		},
		{"embed_content", `{"content":{"parts":[{"text":"` + text + `"}]}}`, request(-1, 0, 0, 0), 1, 0},
		{
			"embed_contents", `{"requests":[{"content":{"parts":[{"text":"` + text + `"}]}},{"content":{"parts":[{"text":"` +
				text + `"}]}}]}`, request(-1, 0, 0, 0), 2, 0,
		},
		{"predict", `{"instances":[{"content":"` + text + `"}]}`, request(-1, 0, 0, 0), 1, 0},
		{
			"converse", `{"system":[{"text":"` + text + `"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user",` +
				`"content":[{"text":"` + text + `"},{"image":{"format":"png","source":{"bytes":"` + image +
				`"}}},{"document":{"format":"pdf","name":"x","source":{"bytes":"` + image +
				`"}}}]}],"inferenceConfig":{"maxTokens":512,"temperature":1}}`,
			request(512, 1, 1, 1), 2, 765 + 1500 + 3 + 3,
		},
		{
			"invoke_claude", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":64,"messages":[{"role":"user",` +
				`"content":"` + text + `"}]}`, request(64, 1, 0, 0), 1, 3 + 3,
		},
		{
			"invoke_nova", `{"inferenceConfig":{"max_new_tokens":7},"messages":[{"role":"user","content":[{"text":"` + text +
				`"}]}]}`, request(7, 1, 0, 0), 1, 3 + 3,
		},
		{"invoke_llama", `{"prompt":"` + text + `","max_gen_len":33}`, request(33, 0, 0, 0), 1, 0},
		{"invoke_titan", `{"inputText":"` + text + `"}`, request(-1, 0, 0, 0), 1, 0},
	}
}
