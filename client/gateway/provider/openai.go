package provider

import "time"

var openAI = Table{
	Name:    NameOpenAI,
	Signals: signals(spent, insufficient, busy, tooLarge, rates),
	// What is left of tokens moves by the estimate. The reset is when all of it is back,
	// not when the next request fits.
	Headers: []Header{
		xRateLimit("Requests", Requests, false, openAILimits),
		xRateLimit("Tokens", Tokens, false, openAILimits),
		xRateLimit("Tokens_usage_based", "tokens_usage_based", false, quoted("community.openai.com 541210")),
		xRateLimit("Input-Images", "input_images", false, recorded("envoyproxy/ai-gateway chat-image-to-text.yaml")),
	},
	Counting: Counting{
		Counts: []Count{
			// Limits may be enforced over a second: 60,000 a minute as 1,000 a second.
			{Dimension: Requests, Estimate: One, Settle: Kept, Refill: Continuous, Window: time.Second},
			{
				Dimension: Tokens, Estimate: LargerOfBoth, Settle: Kept, Refill: Continuous, Window: time.Second,
				CacheReadPPM: Whole, CacheWritePPM: Whole, OutputPPM: Whole,
			},
		},
		// Of requests that don't bound their output the guide counts the text alone.
		MaxAssumed:  false,
		FailedCount: true,
		Seen:        documented("OpenAI rate-limits guide; help.openai.com 6891753"),
	},
	Routes: []Route{
		{"/v1/chat/completions", Chat, InBody, OpenAIBody, false, openAIPaths},
		{"/v1/completions", Completions, InBody, OpenAIBody, false, openAIPaths},
		{"/v1/responses", Responses, InBody, OpenAIBody, false, openAIPaths},
		{"/v1/embeddings", Embeddings, InBody, OpenAIBody, false, openAIPaths},
	},
	Request: "X-Request-Id",
	Keys:    Keys{Seen: Seen{Source, "openai/openai-python _base_client.py: its SDKs leave the header out", keysSeen}},
}

var (
	openAILimits = recorded("envoyproxy/ai-gateway chat-basic.yaml; OpenAI rate-limits guide")
	openAIPaths  = documented("OpenAI API reference")
)
