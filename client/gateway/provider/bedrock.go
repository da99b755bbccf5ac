package provider

import "time"

// Bedrock names what is wrong in a header, and says how long to wait nowhere.

var bedrock = Table{
	Name: NameBedrock, Keys: Keys{Seen: Seen{Chosen, "what is safe where nothing is known", keysSeen}},
	Signals: signals([]Signal{
		{
			Code: []string{"servicequotaexceededexception"}, Class: HardQuota, Scope: Organization,
			Seen: documented("docs.aws.amazon.com bedrock troubleshooting-api-error-codes").afresh(),
		},
		{
			// When a day begins nobody says.
			Code: []string{throttling}, Says: []string{"too many tokens per day"}, Class: LongWindow,
			Scope: Organization, Dimension: Tokens, Advised: time.Hour,
			Seen: recorded("minorun365/agent-book, 29; the hour is chosen").afresh(),
		},
		{
			Code: []string{throttling}, Says: []string{"too many tokens"}, Class: Transient, Scope: Organization,
			Dimension: Tokens, Seen: recorded("aws-samples/amazon-bedrock-client-for-mac, 99").afresh(),
		},
		{
			Code: []string{throttling}, Says: []string{"too many requests"}, Class: Transient, Scope: Organization,
			Dimension: Requests, Seen: quoted("developersdigest.tech bedrock").afresh(),
		},
		{
			Code: []string{throttling}, Class: Transient, Scope: Organization,
			Seen: documented("docs.aws.amazon.com bedrock troubleshooting-api-error-codes").afresh(),
		},
		{
			Code: []string{"modelnotreadyexception"}, Class: Overload, Scope: Deployment,
			Seen: quoted("developersdigest.tech bedrock").afresh(),
		},
		{
			Code: []string{"serviceunavailableexception", "serviceunavailable"}, Class: Overload, Scope: Everybody,
			Seen: quoted("developersdigest.tech bedrock: capacity, no quota").afresh(),
		},
		{
			// In a stream of Anthropic's events within Bedrock's.
			Code: []string{"overloaded_error"}, Class: Overload, Scope: Everybody,
			Seen: source("anthropic-sdk-python _client.py"),
		},
	}, rates),
	Counting: Counting{
		Counts: []Count{
			{Dimension: Requests, Estimate: One, Settle: Kept, Refill: Continuous},
			// What a cache had is given back in the end.
			{
				Dimension: Tokens, Estimate: PromptAndMax, Settle: Actual, Refill: Continuous,
				CacheReadPPM: 0, CacheWritePPM: Whole, OutputPPM: Whole,
			},
		},
		MaxAssumed: true, CacheReserved: true,
		Burndown: []Burndown{
			{
				Models: []string{"claude-3-7-", "claude-sonnet-4", "claude-opus-4", "claude-haiku-4"}, Times: 5,
				Seen: quoted("docs.aws quotas-token-burndown, by others: 3.7 to 4.7").afresh(),
			},
			// Later families are quoted with 10 to 15. The lower one gives back too much, and
			// the higher one holds back what is there.
			{
				Models: []string{"claude-sonnet-5", "claude-opus-5", "claude-haiku-5"}, Times: 15,
				Seen: quoted("docs.aws quotas-token-burndown, by others: 10 to 15").afresh(),
			},
		},
		Seen: documented("aws/agent-toolkit-for-aws quota-health.md; docs.aws quotas-runtime.html").afresh(),
	},
	Routes: append(append([]Route{},
		bedrockRoutes("/model/"+deployment)...),
		// A model by its ARN, whose last part names it.
		bedrockRoutes("/model/arn:{arn}/"+deployment)...),
	Request: "X-Amzn-Requestid", Errors: "X-Amzn-Errortype",
}

const throttling = "throttlingexception"

func bedrockRoutes(model string) []Route {
	seen := documented("docs.aws.amazon.com bedrock API reference").afresh()
	return []Route{
		{Path: model + "/converse", Kind: Chat, Model: InPath, Body: AWSBody, Seen: seen},
		{Path: model + "/converse-stream", Kind: Chat, Model: InPath, Body: AWSBody, Streams: true, Seen: seen},
		{Path: model + "/invoke", Kind: Invoke, Model: InPath, Body: AWSBody, Seen: seen},
		{Path: model + "/invoke-with-response-stream", Kind: Invoke, Model: InPath, Body: AWSBody, Streams: true, Seen: seen},
	}
}
