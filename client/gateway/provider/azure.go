package provider

import "time"

var azure = Table{
	Name: NameAzure,
	Signals: signals(spent, []Signal{
		{
			Status: []int{403}, Says: []string{"quota"}, Class: HardQuota,
			Seen: documented("learn.microsoft.com llm-token-limit-policy"),
		},
	}, insufficient, busy, []Signal{
		{
			Status: []int{429, 503},
			Says: []string{
				"system is experiencing high demand",
				"the service is temporarily unable to process your request",
			},
			Class: Overload, Scope: Everybody,
			Seen: quoted("developersdigest.tech azure-openai; learn.microsoft.com dev-proxy azure-openai-429"),
		},
	}, tooLarge, []Signal{
		{
			Status: []int{429}, When: LimitIsLower, Class: Adapt, Scope: Deployment,
			Seen: quoted("developersdigest.tech azure-openai; learn.microsoft.com dev-proxy azure-openai-429"),
		},
		long,
		{
			Status: []int{429}, Says: []string{"rate limit is exceeded", "have been limited"},
			Class: Transient, Scope: Deployment,
			Seen: quoted("developersdigest.tech azure-openai; learn.microsoft.com dev-proxy azure-openai-429"),
		},
		{
			// "Requests to the … Operation under … have exceeded token rate limit of …". What is
			// larger than the limit is told to wait for a day.
			Status: []int{429}, Says: []string{"exceeded token rate limit", "exceeded call rate limit"},
			Class: Transient, Scope: Deployment,
			Seen: recorded("langchain-ai/langchain, 12986; microsoft/sample-app-aoai-chatGPT, 406").afresh(),
		},
	}, rates),
	Headers: []Header{
		// 20 for a deployment of 120 a minute: the limit of ten seconds.
		xRateLimit("Requests", Requests, true, documented("learn.microsoft.com answers 2265464")),
		// The reset is in whole seconds; Responses may say -1 for what it does not count.
		xRateLimit("Tokens", Tokens, false, documented("learn.microsoft.com answers 5625878")),
	},
	Counting: Counting{
		Counts: []Count{
			{Dimension: Requests, Estimate: One, Settle: Kept, Refill: EachMinute, Window: 10 * time.Second},
			{
				Dimension: Tokens, Estimate: PromptAndMax, Settle: Kept, Refill: EachMinute,
				CacheReadPPM: Whole, CacheWritePPM: Whole, OutputPPM: Whole,
			},
		},
		MaxAssumed: true,
		Seen:       documented("MicrosoftDocs/azure-docs openai/how-to/quota.md at 13ad146; answers 1381398"),
	},
	Routes: []Route{
		{"/openai/deployments/{deployment}/chat/completions", Chat, InPath, OpenAIBody, false, azurePaths},
		{"/openai/deployments/{deployment}/completions", Completions, InPath, OpenAIBody, false, azurePaths},
		{"/openai/deployments/{deployment}/embeddings", Embeddings, InPath, OpenAIBody, false, azurePaths},
		{"/openai/responses", Responses, InBody, OpenAIBody, false, azurePaths},
		{"/openai/v1/chat/completions", Chat, InBody, OpenAIBody, false, azurePaths},
		{"/openai/v1/completions", Completions, InBody, OpenAIBody, false, azurePaths},
		{"/openai/v1/responses", Responses, InBody, OpenAIBody, false, azurePaths},
		{"/openai/v1/embeddings", Embeddings, InBody, OpenAIBody, false, azurePaths},
	},
	Request: "Apim-Request-Id",
	Keys:    Keys{Seen: Seen{Source, "openai/openai-python lib/azure.py: its SDKs leave the header out", keysSeen}},
}

var azurePaths = documented("Azure OpenAI REST API reference")
