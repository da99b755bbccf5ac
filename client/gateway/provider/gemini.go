package provider

import "time"

// Google says how long to wait in the body of an answer, and nothing in its headers.

var gemini = Table{
	Name: NameGemini, Keys: Keys{Seen: Seen{Chosen, "what is safe where nothing is known", keysSeen}},
	Signals: signals([]Signal{
		{
			Status: []int{402}, Class: HardQuota, Scope: Project,
			Seen: quoted("developersdigest.tech gemini-api").afresh(),
		},
		{
			Status: []int{429}, When: NothingGiven, Class: HardQuota, Scope: Project,
			Seen: recorded("continuedev/continue, 9570: limit: 0, also with a retryDelay of a minute").afresh(),
		},
		{
			// A wait of seconds stands beside it, and does not help.
			Status: []int{429}, CodeHas: []string{"perday"}, Class: HardQuota, Scope: Project, Ends: PacificDay,
			Seen: recorded("google-gemini/gemini-cli, 8437; langgenius/dify, 19838; BerriAI/litellm, 25507").afresh(),
		},
		{
			Status: []int{429}, Code: []string{"quota_exceeded"}, Class: HardQuota, Scope: Project, Ends: PacificDay,
			Seen: quoted("developersdigest.tech gemini-api: daily, midnight Pacific").afresh(),
		},
		{
			Status: []int{429}, Says: []string{"spend cap", "spending cap"}, Class: HardQuota, Scope: Project,
			Seen: quoted("gossipcat-ai, 569").afresh(),
		},
		{
			// Over ten minutes that roll. How it is worded nobody has recorded.
			Status: []int{429}, Says: []string{"spend-based"}, Class: Transient, Scope: Project,
			Seen: quoted("developersdigest.tech gemini-api").afresh(),
		},
		{
			Status: []int{429}, When: HintIsLong, Class: HardQuota, Scope: Project, Ends: AfterWait,
			Seen: quoted("brekkylab/ailoy, 431: retryDelay of hours").afresh(),
		},
		{
			Status: []int{429}, CodeHas: []string{"inputtokens"}, Class: Transient, Scope: Project, Dimension: InputTokens,
			Seen: recorded("google-gemini/gemini-cli, 8437").afresh(),
		},
		{
			Status: []int{429}, CodeHas: []string{"requestsperminute"}, Class: Transient, Scope: Project,
			Dimension: Requests, Seen: recorded("google-gemini/gemini-cli, 8437").afresh(),
		},
		{
			Status: []int{429}, Code: []string{"rate_limit_exceeded", "too_many_requests"}, Class: Transient, Scope: Project,
			Seen: quoted("developersdigest.tech gemini-api").afresh(),
		},
		{
			// Who is refused for a minute is told how long. Without that it is a day's quota at
			// the most.
			Status: []int{429}, Code: []string{"resource_exhausted"}, When: NoHint, Class: HardQuota, Scope: Project,
			Ends: PacificDay, Seen: quoted("dev.to nils44344; BerriAI/litellm, 25507").afresh(),
		},
		googleBusy,
	}),
	Counting: Counting{
		Counts: []Count{
			// A limit of a day counts them, too.
			{Dimension: Requests, Estimate: One, Settle: Kept, Refill: Continuous},
			{
				Dimension: InputTokens, Estimate: Prompt, Settle: Actual, Refill: Continuous,
				CacheReadPPM: Whole, CacheWritePPM: Whole,
			},
		},
		// Nobody says whether refused requests count: the safe side.
		FailedCount: true,
		Seen:        quoted("developersdigest.tech gemini-api: of a project, not of a key").afresh(),
	},
	Routes: geminiRoutes("/v1beta/models/", "/v1/models/", "/v1alpha/models/"),
}

var vertex = Table{
	Name: NameVertex, Keys: Keys{Seen: Seen{Chosen, "what is safe where nothing is known", keysSeen}},
	Signals: signals([]Signal{
		{
			Status: []int{429}, Says: []string{"exceeded the provisioned throughput"}, Class: Transient, Scope: Deployment,
			Seen: documented("cloud.google.com error-code-429").afresh(),
		},
		{
			// What everybody shares is used up, and no limit of one's own. To try twice more, a
			// second apart at least, is Google's advice.
			Status: []int{429}, When: Always,
			Says: []string{
				"resource exhausted, please try again later", "resource exhausted. please try again later",
				"resource has been exhausted",
			},
			Class: Overload, Scope: Everybody, Advised: time.Second,
			Seen: documented("cloud.google.com error-code-429; google-gemini/gemini-cli, 14811").afresh(),
		},
		vertexQuota("online_prediction_input_tokens_per_minute", InputTokens),
		vertexQuota("online_prediction_output_tokens_per_minute", OutputTokens),
		vertexQuota("requests_per_minute", Requests),
		vertexQuota("quota exceeded for aiplatform.googleapis.com", ""),
		{
			Code: []string{"overloaded_error"}, Class: Overload, Scope: Everybody,
			Seen: source("anthropic-sdk-python _client.py"),
		},
		googleBusy,
	}, rates),
	Counting: Counting{
		// Who pays as he goes has no limit that is known before, and others have one of these.
		Counts: []Count{
			{Dimension: Requests, Estimate: One, Settle: Kept, Refill: Continuous},
			{
				Dimension: InputTokens, Estimate: Prompt, Settle: Actual, Refill: Continuous,
				CacheReadPPM: Whole, CacheWritePPM: Whole,
			},
			{Dimension: OutputTokens, Estimate: AsProduced, Settle: Actual, Refill: Continuous, OutputPPM: Whole},
		},
		FailedCount: true,
		Seen:        chosen("cloud.google.com throughput-quota: none is predefined, and smooth traffic is advised").afresh(),
	},
	Routes: append(append(
		geminiRoutes(vertexModels("v1", "google"), vertexModels("v1beta1", "google"),
			"/v1/publishers/google/models/", "/v1beta1/publishers/google/models/"),
		vertexClaude("v1")...), vertexClaude("v1beta1")...),
}

// googleBusy is 503, also within a stream.
var googleBusy = Signal{
	Code: []string{"unavailable"}, Class: Overload, Scope: Everybody,
	Seen: quoted("llmgateway.io; developersdigest.tech gemini-api").afresh(),
}

func vertexQuota(words, dimension string) Signal {
	return Signal{
		Status: []int{429}, Says: []string{words}, Class: Transient, Scope: Project, Dimension: dimension,
		Seen: recorded("felixbinder/introspection_self_prediction, 66").afresh(),
	}
}

func vertexModels(version, publisher string) string {
	return "/" + version + "/projects/{project}/locations/{location}/publishers/" + publisher + "/models/"
}

var googlePaths = documented("ai.google.dev and cloud.google.com API references").afresh()

// geminiRoutes are those of models behind each of the paths. Without alt=sse a stream is one
// array, an element at a time.
func geminiRoutes(models ...string) (routes []Route) {
	for _, path := range models {
		path += deployment
		routes = append(routes,
			Route{Path: path + ":generateContent", Kind: Chat, Model: InPath, Body: GoogleBody, Seen: googlePaths},
			Route{
				Path: path + ":streamGenerateContent", Kind: Chat, Model: InPath, Body: GoogleBody, Streams: true,
				Seen: googlePaths,
			},
			Route{Path: path + ":embedContent", Kind: Embeddings, Model: InPath, Body: GoogleBody, Seen: googlePaths},
			Route{Path: path + ":batchEmbedContents", Kind: Embeddings, Model: InPath, Body: GoogleBody, Seen: googlePaths},
			Route{Path: path + ":predict", Kind: Embeddings, Model: InPath, Body: GoogleBody, Seen: googlePaths},
		)
	}
	return routes
}

func vertexClaude(version string) []Route {
	path := vertexModels(version, "anthropic") + deployment
	return []Route{
		{Path: path + ":rawPredict", Kind: Messages, Model: InPath, Body: AnthropicBody, Seen: googlePaths},
		{Path: path + ":streamRawPredict", Kind: Messages, Model: InPath, Body: AnthropicBody, Seen: googlePaths},
	}
}
