package provider

// compatible is what speaks as OpenAI does: other providers, gateways, and models
// that people serve themselves.
var compatible = Table{
	Name: NameCompatible,
	Signals: signals(spent, []Signal{
		{
			Code: []string{"budget_exceeded"}, Class: HardQuota,
			Seen: quoted("LiteLLM: HKUDS/LightRAG, 3736"),
		},
		{
			Code: []string{anthropicSpend}, Class: HardQuota, Scope: Organization,
			Seen: documented("platform.claude.com rate-limits"),
		},
		{
			Code: []string{"billing_error"}, Class: HardQuota, Scope: Organization,
			Seen: quoted("developersdigest.tech anthropic-api"),
		},
	}, insufficient, busy, tooLarge, rates),
	Headers: []Header{
		xRateLimit("Requests", Requests, false, openAILimits),
		xRateLimit("Tokens", Tokens, false, openAILimits),
	},
	Counting: Counting{
		Counts: []Count{
			{Dimension: Requests, Estimate: One, Settle: Kept, Refill: Continuous},
			// The safe side of what is not known: all output that was asked for, and what was
			// used when that is known.
			{
				Dimension: Tokens, Estimate: PromptAndMax, Settle: Actual, Refill: Continuous,
				CacheReadPPM: Whole, CacheWritePPM: Whole, OutputPPM: Whole,
			},
		},
		MaxAssumed: true, FailedCount: true,
		Seen: chosen("what is safe where nothing is known"),
	},
	Routes: []Route{
		{"/**/chat/completions", Chat, InBody, OpenAIBody, false, openAIPaths},
		{"/**/completions", Completions, InBody, OpenAIBody, false, openAIPaths},
		{"/**/responses", Responses, InBody, OpenAIBody, false, openAIPaths},
		{"/**/embeddings", Embeddings, InBody, OpenAIBody, false, openAIPaths},
	},
	Request: "X-Request-Id",
	Keys:    Keys{Seen: Seen{Chosen, "what is safe where nothing is known", keysSeen}},
}
