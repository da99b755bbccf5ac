package upstream

import "time"

const resumes = " You will regain access on {resume} at 00:00 UTC."

// openAIRefusals, azureRefusals and anthropicRefusals are what was seen in documents
// and in answers, as of November 2026.
var openAIRefusals = map[Cause]refusal{
	Requests: {status: 429, kind: "requests", code: "rate_limit_exceeded", message: "Rate limit reached for {model}" +
		" on requests per min (RPM): Limit {limit}, Used {used}, Requested 1. Please try again in {wait}."},
	InputTokens: {status: 429, kind: "tokens", code: "rate_limit_exceeded", message: "Rate limit reached for {model}" +
		" on tokens per min (TPM): Limit {limit}, Used {used}, Requested {requested}. Please try again in {wait}."},
	Concurrent: {
		status: 429, kind: "requests", code: "rate_limit_exceeded",
		message: "Rate limit reached for {model} on concurrent requests. Please try again in {wait}.",
	},
	SlowDown: {
		status: 429, kind: "rate_limit_error", code: "slow_down",
		message: "Your request rate grew too fast. Reduce it and increase it gradually.",
	},
	TooLarge: {status: 429, kind: "tokens", code: "rate_limit_exceeded", message: "Request too large for {model}" +
		" on tokens per min (TPM): Limit {limit}, Requested {requested}. The input or output tokens must be reduced."},
	Overload: {
		status: 503, kind: "service_unavailable_error", code: "server_is_overloaded",
		message: "The server is currently overloaded with other requests. Please try again later.",
	},
	SpendCap: {
		status: 429, kind: "insufficient_quota", code: "organization_spend_limit_exceeded",
		message: "Your organization has reached its spend limit.",
	},
	CreditBalance: {
		status: 429, kind: "insufficient_quota", code: "credit_balance_exhausted",
		message: "Your credit balance is exhausted.",
	},
	ProjectSpend: {
		status: 429, kind: "insufficient_quota", code: "project_spend_limit_exceeded",
		message: "Your project has reached its spend limit.",
	},
	OrganizationUsage: {
		status: 429, kind: "insufficient_quota", code: "organization_usage_limit_exceeded",
		message: "Your organization has reached its usage limit.",
	},
	InsufficientQuota: {
		status: 429, kind: "insufficient_quota", code: "insufficient_quota",
		message: "You exceeded your current quota, please check your plan and billing details.",
	},
	BillingHardLimit: {
		status: 429, kind: "insufficient_quota", code: "billing_hard_limit_reached",
		message: "Billing hard limit has been reached.",
	},
	Unauthorized: {
		status: 401, kind: "invalid_request_error", code: "invalid_api_key", message: "You didn't provide an API key.",
	},
	Malformed:    {status: 400, kind: "invalid_request_error", message: "{detail}"},
	NotFound:     {status: 404, kind: "invalid_request_error", message: "Invalid URL ({detail})"},
	BodyTooLarge: {status: 413, kind: "invalid_request_error", message: "The request is too large."},
	Closed:       {status: 503, kind: "service_unavailable_error", message: "The server is shutting down."},
}

var azureRefusals = map[Cause]refusal{
	Requests: {status: 429, code: "429", message: "Requests to this deployment have been limited by its requests" +
		" per minute. Rate limit is exceeded. Try again in {wait}."},
	InputTokens: {
		status: 429, code: "429",
		message: "Requests to this deployment have been limited. Rate limit is exceeded. Try again in {wait}.",
	},
	Concurrent: {
		status: 429, code: "429",
		message: "Requests to this deployment have been limited. Rate limit is exceeded. Try again in {wait}.",
	},
	SlowDown: {
		status: 429, code: "429", waitIfUnnamed: time.Second,
		message: "Requests to this deployment have been limited. Rate limit is exceeded.",
	},
	TooLarge: {
		status: 429, code: "429", message: "Requests to this deployment have been limited. Rate limit is exceeded.",
	},
	Overload: {
		status: 429, code: "429", waitIfUnnamed: time.Second,
		message: "System is experiencing high demand. Please retry later.",
	},
	Unavailable: {
		status: 429, code: "429", waitIfUnnamed: time.Second,
		message: "The service is temporarily unable to process your request. Please try again later.",
	},
	SpendCap: {
		status: 429, kind: "insufficient_quota", code: "credit_balance_exhausted",
		message: "Your credit balance is exhausted.",
	},
	InsufficientQuota: {
		status: 429, kind: "insufficient_quota", code: "insufficient_quota", waitIfUnnamed: 10 * time.Second,
		message: "You exceeded your current quota, please check your plan and billing details.",
	},
	Unauthorized: {status: 401, code: "401", message: "Access denied due to invalid subscription key."},
	Malformed:    {status: 400, kind: "invalid_request_error", message: "{detail}"},
	NotFound:     {status: 404, code: "404", message: "Resource not found"},
	BodyTooLarge: {status: 413, code: "413", message: "The request is too large."},
	Closed:       {status: 503, code: "503", message: "The server is shutting down."},
}

const wouldExceed = "This request would exceed your organization's rate limit of {limit} "

var anthropicRefusals = map[Cause]refusal{
	Requests:     {status: 429, kind: "rate_limit_error", message: wouldExceed + "requests per minute."},
	InputTokens:  {status: 429, kind: "rate_limit_error", message: wouldExceed + "input tokens per minute."},
	OutputTokens: {status: 429, kind: "rate_limit_error", message: wouldExceed + "output tokens per minute."},
	Concurrent: {
		status: 429, kind: "rate_limit_error",
		message: "Number of concurrent connections has exceeded your rate limit.",
	},
	SlowDown: {
		status: 429, kind: "rate_limit_error",
		message: "Your usage grew sharply and reached the acceleration limits. Increase your traffic gradually.",
	},
	TooLarge: {status: 429, kind: "rate_limit_error", message: wouldExceed + "input tokens per minute."},
	Overload: {status: 529, kind: "overloaded_error", message: "Overloaded"},
	SpendCap: {
		status: 429, kind: "rate_limit_error", detailsCode: "enforced_spend_limit_reached",
		message: "You have reached your API usage limits." + resumes,
	},
	SpecifiedLimit: {
		status: 400, kind: "invalid_request_error",
		message: "You have reached your specified API usage limits." + resumes,
	},
	WorkspaceLimit: {
		status: 400, kind: "invalid_request_error",
		message: "You have reached your specified workspace API usage limits." + resumes,
	},
	CreditBalanceTooLow: {
		status: 400, kind: "invalid_request_error", neverRetry: true,
		message: "Your credit balance is too low to access the Anthropic API.",
	},
	Billing: {
		status: 402, kind: "billing_error", message: "There is an issue with your billing or payment information.",
	},
	Unauthorized: {status: 401, kind: "authentication_error", message: "x-api-key header is required"},
	Malformed:    {status: 400, kind: "invalid_request_error", message: "{detail}"},
	NotFound:     {status: 404, kind: "not_found_error", message: "Not found: {detail}"},
	BodyTooLarge: {status: 413, kind: "request_too_large", message: "Request exceeds the maximum size"},
	Closed:       {status: 503, kind: "api_error", message: "The server is shutting down."},
}

var refusals = map[API]map[Cause]refusal{
	OpenAI: openAIRefusals, Azure: azureRefusals, Anthropic: anthropicRefusals,
	Gemini: geminiRefusals, Vertex: vertexRefusals, Bedrock: bedrockRefusals,
}
