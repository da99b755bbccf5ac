package upstream

const (
	exhausted = "RESOURCE_EXHAUSTED"
	current   = "You exceeded your current quota, please check your plan and billing details."
	invalid   = "INVALID_ARGUMENT"
)

// geminiRefusals, vertexRefusals and bedrockRefusals are what was seen, as of December 2026. The
// code of a refusal of Google's is the id of a quota.
var geminiRefusals = map[Cause]refusal{
	Requests: {
		status: 429, kind: exhausted, code: "GenerateRequestsPerMinutePerProjectPerModel",
		message: current + " Please retry in {wait}.",
	},
	InputTokens: {
		status: 429, kind: exhausted, code: "GenerateContentInputTokensPerModelPerMinute",
		message: current + " Please retry in {wait}.",
	},
	Concurrent: {status: 429, kind: exhausted, message: current + " Please retry in {wait}."},
	SlowDown:   {status: 429, kind: "too_many_requests", message: "Too many requests."},
	TooLarge: {
		status: 429, kind: exhausted, code: "GenerateContentInputTokensPerModelPerMinute",
		message: current + " Limit {limit}, requested {requested}.",
	},
	Daily: {
		status: 429, kind: exhausted, code: "GenerateRequestsPerDayPerProjectPerModel",
		message: current + " Please retry in {wait}.",
	},
	SpendCap:     {status: 429, kind: exhausted, message: "Your project has reached its spend cap."},
	Billing:      {status: 402, kind: "FAILED_PRECONDITION", message: "Billing is not in order."},
	Overload:     {status: 503, kind: "UNAVAILABLE", message: "The model is overloaded. Please try again later."},
	Unauthorized: {status: 401, kind: "UNAUTHENTICATED", message: "API key not valid."},
	Malformed:    {status: 400, kind: invalid, message: "{detail}"},
	NotFound:     {status: 404, kind: "NOT_FOUND", message: "Not found: {detail}"},
	BodyTooLarge: {status: 413, kind: invalid, message: "The request is too large."},
	Closed:       {status: 503, kind: "UNAVAILABLE", message: "The server is shutting down."},
}

const provisioned = "Too many requests. Exceeded the Provisioned Throughput."

var vertexRefusals = map[Cause]refusal{
	Requests:     {status: 429, kind: exhausted, message: provisioned},
	InputTokens:  {status: 429, kind: exhausted, message: provisioned},
	Concurrent:   {status: 429, kind: exhausted, message: provisioned},
	SlowDown:     {status: 429, kind: exhausted, message: "Resource exhausted, please try again later."},
	TooLarge:     {status: 429, kind: exhausted, message: provisioned},
	Overload:     {status: 429, kind: exhausted, message: "Resource exhausted, please try again later."},
	Unavailable:  {status: 503, kind: "UNAVAILABLE", message: "The service is currently unavailable."},
	Unauthorized: {status: 401, kind: "UNAUTHENTICATED", message: "Request had invalid authentication credentials."},
	Malformed:    {status: 400, kind: invalid, message: "{detail}"},
	NotFound:     {status: 404, kind: "NOT_FOUND", message: "Not found: {detail}"},
	BodyTooLarge: {status: 413, kind: invalid, message: "The request is too large."},
	Closed:       {status: 503, kind: "UNAVAILABLE", message: "The server is shutting down."},
}

const throttling = "ThrottlingException"

var bedrockRefusals = map[Cause]refusal{
	Requests:     {status: 429, kind: throttling, message: "Too many requests, please wait before trying again."},
	InputTokens:  {status: 429, kind: throttling, message: "Too many tokens, please wait before trying again."},
	Concurrent:   {status: 429, kind: throttling, message: "Too many connections, please wait before trying again."},
	SlowDown:     {status: 429, kind: "ModelNotReadyException", message: "The model is not ready for inference requests."},
	TooLarge:     {status: 429, kind: throttling, message: "Too many tokens, please wait before trying again."},
	Daily:        {status: 429, kind: throttling, message: "Too many tokens per day, please wait before trying again."},
	Overload:     {status: 503, kind: "ServiceUnavailableException", message: "Bedrock is unable to process it."},
	SpendCap:     {status: 400, kind: "ServiceQuotaExceededException", message: "A quota of the account is exceeded."},
	Unauthorized: {status: 403, kind: "AccessDeniedException", message: "Authentication failed."},
	Malformed:    {status: 400, kind: "ValidationException", message: "{detail}"},
	NotFound:     {status: 404, kind: "UnknownOperationException", message: "{detail}"},
	BodyTooLarge: {status: 413, kind: "ValidationException", message: "The request is too large."},
	Closed:       {status: 503, kind: "ServiceUnavailableException", message: "The server is shutting down."},
}
