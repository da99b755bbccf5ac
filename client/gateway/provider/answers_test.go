package provider

import (
	"net/http"
	"time"
)

// header is made of pairs of names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// oa and an are bodies of errors of OpenAI and of Anthropic.
func oa(kind, code, message string) string {
	return `{"error":{"message":"` + message + `","type":"` + kind + `","param":null,"code":"` + code + `"}}`
}

func an(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
}

const (
	reachedTPM = "Rate limit reached for m in organization org-1 on tokens per min (TPM): Limit 30000, " +
		"Used 14567, Requested 24754. Please try again in 18.642s."
	largeTPM = "Request too large for m in organization org-1 on tokens per min (TPM): Limit 30000, Requested 36278."
	reached  = "You have reached your API usage limits. You will regain access on 2026-09-01 at 00:00 UTC."
)

// answered is one answer and what it means.
type answered struct {
	name   string
	table  string
	status int
	header http.Header
	body   string

	want      Class
	scope     Scope
	dimension string
	reason    string
	wait      time.Duration
	may       bool
}

var openAIAnswers = []answered{
	{
		"a_rate_with_its_dimension", NameOpenAI, 429, header("Retry-After", "19"),
		oa("tokens", "rate_limit_exceeded", reachedTPM), Transient, Organization, Tokens, "rate_limit_exceeded",
		19 * time.Second, true,
	},
	{
		"a_rate_of_requests_and_no_header", NameOpenAI, 429, nil,
		oa("requests", "rate_limit_exceeded", "Limit reached in project p on requests per min. Please try again in 6ms."),
		Transient, Project, Requests, "rate_limit_exceeded", 6 * time.Millisecond, true,
	},
	{
		"more_than_the_limit", NameOpenAI, 429, nil, oa("tokens", "rate_limit_exceeded", largeTPM),
		TooLarge, Organization, Tokens, "rate_limit_exceeded", 0, false,
	},
	{
		"slow_down", NameOpenAI, 429, header("Retry-After", "2"), oa("rate_limit_error", "slow_down", "Slow down."),
		Acceleration, "", "", "slow_down", 2 * time.Second, true,
	},
	{
		"slow_down_of_old", NameOpenAI, 503, nil, oa("server_error", "slow_down", "Slow down."),
		Acceleration, "", "", "slow_down", 0, true,
	},
	{
		"overloaded", NameOpenAI, 503, nil, oa("service_unavailable_error", "server_is_overloaded", "Busy."),
		Overload, Everybody, "", "server_is_overloaded", 0, true,
	},
	{
		"credit", NameOpenAI, 429, nil, oa("insufficient_quota", "credit_balance_exhausted", "No credit."),
		HardQuota, Organization, "", "credit_balance_exhausted", 0, false,
	},
	{
		"credit_whatever_the_hint", NameOpenAI, 429, header("Retry-After", "1", "X-Should-Retry", "true"),
		oa("insufficient_quota", "credit_balance_exhausted", "No credit."),
		HardQuota, Organization, "", "credit_balance_exhausted", time.Second, false,
	},
	{
		"spend_of_an_organization", NameOpenAI, 429, nil,
		oa("insufficient_quota", "organization_spend_limit_exceeded", "Spent."),
		HardQuota, Organization, "", "organization_spend_limit_exceeded", 0, false,
	},
	{
		"spend_of_a_project", NameOpenAI, 429, nil, oa("insufficient_quota", "project_spend_limit_exceeded", "Spent."),
		HardQuota, Project, "", "project_spend_limit_exceeded", 0, false,
	},
	{
		"usage_of_an_organization", NameOpenAI, 429, nil,
		oa("insufficient_quota", "organization_usage_limit_exceeded", "Used."),
		HardQuota, Organization, "", "organization_usage_limit_exceeded", 0, false,
	},
	{
		"quota_of_old", NameOpenAI, 429, nil, oa("insufficient_quota", "insufficient_quota", "Quota."),
		HardQuota, Organization, "", "insufficient_quota", 0, false,
	},
	{
		"billing_of_old", NameOpenAI, 429, nil, oa("invalid_request_error", "billing_hard_limit_reached", "Billing."),
		HardQuota, Organization, "", "billing_hard_limit_reached", 0, false,
	},
	{
		"quota_with_a_short_hint", NameOpenAI, 429, header("Retry-After", "120"),
		oa("insufficient_quota", "insufficient_quota", "Quota."), Transient, "", "", "insufficient_quota",
		2 * time.Minute, true,
	},
	{
		"quota_with_a_longer_hint", NameOpenAI, 429, header("Retry-After", "121"),
		oa("insufficient_quota", "insufficient_quota", "Quota."), HardQuota, Organization, "", "insufficient_quota",
		121 * time.Second, false,
	},
	{"a_bare_429", NameOpenAI, 429, nil, "", Transient, "", "", "", 0, true},
	{"retries_unwanted", NameOpenAI, 429, header("X-Should-Retry", "false"), "", Transient, "", "", "", 0, false},
	{"S2-21_another_error", NameOpenAI, 500, nil, oa("server_error", "x", "Oops."), Other, "", "", "x", 0, false},
	{
		"another_error_to_be_retried", NameOpenAI, 500, header("X-Should-Retry", "true"), "", Other, "", "", "", 0, true,
	},
	{"an_answer", NameOpenAI, 200, nil, `{"error":{"code":"slow_down"}}`, None, "", "", "", 0, false},
	{
		"a_message_quotes_money", NameOpenAI, 400, nil,
		oa("invalid_request_error", "invalid_value", "Not insufficient_quota"), Other, "", "", "invalid_value", 0, false,
	},
}

var anthropicAnswers = []answered{
	{
		"a_rate_of_input", NameAnthropic, 429, header("Retry-After", "22"),
		an("rate_limit_error", "This would exceed the rate limit for your organization of 20,000 input tokens per minute."),
		Transient, Organization, InputTokens, "rate_limit_error", 22 * time.Second, true,
	},
	{
		"growth", NameAnthropic, 429, nil, an("rate_limit_error", "You have hit an acceleration limit."),
		Acceleration, Organization, "", "rate_limit_error", 0, true,
	},
	{
		"the_spend_limit", NameAnthropic, 429, nil,
		`{"type":"error","error":{"type":"rate_limit_error","message":"` + reached +
			`","details":{"error_code":"enforced_spend_limit_reached"}}}`,
		HardQuota, Organization, "", "enforced_spend_limit_reached", 0, false,
	},
	{
		"the_spend_limit_without_its_code", NameAnthropic, 429, nil, an("rate_limit_error", reached),
		HardQuota, Organization, "", "rate_limit_error", 0, false,
	},
	{
		"the_limit_of_a_workspace_with_a_hint", NameAnthropic, 429, header("Retry-After", "30"),
		an("rate_limit_error", "You have reached your specified workspace API usage limits."),
		Transient, Workspace, "", "rate_limit_error", 30 * time.Second, true,
	},
	{
		"a_400_that_is_money", NameAnthropic, 400, nil,
		an("invalid_request_error", "You have reached your specified API usage limits. Access on 2026-09-01 at 00:00 UTC."),
		HardQuota, Organization, "", "invalid_request_error", 0, false,
	},
	{
		"a_400_that_is_a_workspace's_money", NameAnthropic, 400, nil,
		an("invalid_request_error", "You have reached your specified workspace API usage limits."),
		HardQuota, Workspace, "", "invalid_request_error", 0, false,
	},
	{
		"credit", NameAnthropic, 400, header("X-Should-Retry", "false"),
		an("invalid_request_error", "Your credit balance is too low to access the API."),
		HardQuota, Organization, "", "invalid_request_error", 0, false,
	},
	{
		"a_400_that_quotes_money", NameAnthropic, 400, nil,
		an("invalid_request_error", "messages: you have reached your specified API usage limits, credit balance is too low"),
		Other, "", "", "invalid_request_error", 0, false,
	},
	{
		"billing", NameAnthropic, 402, nil, an("billing_error", "Pay."),
		HardQuota, Organization, "", "billing_error", 0, false,
	},
	{
		"overloaded", NameAnthropic, 529, header("Retry-After", "5"), an("overloaded_error", "Overloaded"),
		Overload, Everybody, "", "overloaded_error", 5 * time.Second, true,
	},
	{"a_bare_529", NameAnthropic, 529, nil, "", Overload, "", "", "", 0, true},
	{
		"hours", NameAnthropic, 429, header("Retry-After", "13262", "Anthropic-Ratelimit-Unified-Status", "rejected"),
		an("rate_limit_error", "Error"), LongWindow, "", "", "rate_limit_error", 13262 * time.Second, true,
	},
	{
		"hours_without_their_header", NameAnthropic, 429, header("Retry-After", "13262"), "",
		LongWindow, "", "", "", 13262 * time.Second, true,
	},
	{
		"too_large", NameAnthropic, 413, nil, an("request_too_large", "Too large."),
		TooLarge, "", "", "request_too_large", 0, false,
	},
	{
		"overloaded_within_a_stream", NameAnthropic, 200, header("Content-Type", "text/event-stream; charset=utf-8"),
		"event: error\ndata: " + an("overloaded_error", "Overloaded") + "\n\n",
		Overload, Everybody, "", "overloaded_error", 0, true,
	},
	{
		"a_rate_within_a_stream_after_a_ping", NameAnthropic, 200, header("Content-Type", "text/event-stream"),
		": hello\r\n\r\nevent: ping\r\ndata: {\"type\":\"ping\"}\r\n\r\nevent: error\r\ndata: " +
			an("rate_limit_error", "Please retry after 7 seconds.") + "\r\n\r\n",
		Transient, "", "", "rate_limit_error", 7 * time.Second, true,
	},
	{
		"a_stream", NameAnthropic, 200, header("Content-Type", "text/event-stream"),
		"event: x\ndata: {\"type\":\"message_start\",\"message\":{\"error\":{\"type\":\"overloaded_error\"}}}\n\n",
		None, "", "", "", 0, false,
	},
}

var azureAnswers = []answered{
	{
		"a_rate", NameAzure, 429, header("Retry-After-Ms", "1500.5", "Retry-After", "9"),
		oa("", "429", "Rate limit is exceeded. Try again in 9 seconds."), Transient, Deployment, "", "429",
		1500500 * time.Microsecond, true,
	},
	{
		"requests_have_been_limited", NameAzure, 429, header("Retry-After", "4"),
		oa("", "429", "Requests to the call rate limit have been limited."),
		Transient, Deployment, Requests, "429", 4 * time.Second, true,
	},
	{
		"tokens_have_exceeded", NameAzure, 429, nil,
		oa("", "429", "Requests to the Create Operation have exceeded token rate limit. Please retry after 9 seconds."),
		Transient, Deployment, Tokens, "429", 9 * time.Second, true,
	},
	{
		"larger_than_the_limit_waits_for_a_day", NameAzure, 429, nil,
		oa("", "429", "Requests have exceeded token rate limit. Please retry after 86400 seconds."),
		LongWindow, "", Tokens, "429", 24 * time.Hour, true,
	},
	{
		"high_demand", NameAzure, 429, header("Retry-After-Ms", "100"),
		oa("", "429", "System is experiencing high demand and cannot process your request."),
		Overload, Everybody, "", "429", 100 * time.Millisecond, true,
	},
	{
		"unable", NameAzure, 429, nil, oa("", "429", "The service is temporarily unable to process your request."),
		Overload, Everybody, "", "429", 0, true,
	},
	{
		"a_lower_limit", NameAzure, 429,
		header("X-Ratelimit-Limit-Tokens", "60000", "X-Ratelimit-Remaining-Tokens", "0", "Retry-After-Ms", "800"),
		oa("", "429", "Rate limit is exceeded."), Adapt, Deployment, Tokens, "429", 800 * time.Millisecond, true,
	},
	{
		"the_configured_limit", NameAzure, 429, header("X-Ratelimit-Limit-Tokens", "100000"),
		oa("", "429", "Rate limit is exceeded."), Transient, Deployment, "", "429", 0, true,
	},
	{
		"quota_of_a_minute", NameAzure, 429, header("Retry-After", "8"),
		oa("insufficient_quota", "insufficient_quota", "Quota."),
		Transient, "", "", "insufficient_quota", 8 * time.Second, true,
	},
	{
		"quota", NameAzure, 429, nil, oa("insufficient_quota", "insufficient_quota", "Quota."),
		HardQuota, Organization, "", "insufficient_quota", 0, false,
	},
	{
		"credit_whatever_the_hint", NameAzure, 429, header("Retry-After", "8"),
		oa("insufficient_quota", "credit_balance_exhausted", "Quota."),
		HardQuota, Organization, "", "credit_balance_exhausted", 8 * time.Second, false,
	},
	{
		"the_quota_of_a_period", NameAzure, 403, nil, `{"statusCode":403,"message":"Token quota is exceeded."}`,
		HardQuota, "", "", "", 0, false,
	},
	{
		"a_word_within_a_stream_is_no_money", NameAzure, 200, header("Content-Type", "text/event-stream"),
		"data: {\"error\":{\"code\":\"x\",\"message\":\"bad value: quota\"}}\n\n", Other, "", "", "x", 0, false,
	},
	{"no_right", NameAzure, 403, nil, `{"statusCode":403,"message":"No access."}`, Other, "", "", "", 0, false},
}

var compatibleAnswers = []answered{
	{
		"a_budget", NameCompatible, 429, nil, oa("budget_exceeded", "400", "Budget has been exceeded."),
		HardQuota, "", "", "400", 0, false,
	},
	{
		"larger_than_a_full_limit", NameCompatible, 413,
		header("X-Should-Retry", "false", "X-Ratelimit-Limit-Tokens", "6000", "X-Ratelimit-Remaining-Tokens", "6000"),
		oa("tokens", "rate_limit_exceeded", "Too large."), TooLarge, "", "", "rate_limit_exceeded", 0, false,
	},
	{
		"larger_than_a_full_limit_as_429", NameCompatible, 429,
		header("X-Should-Retry", "false", "X-Ratelimit-Limit-Tokens", "6000", "X-Ratelimit-Remaining-Tokens", "6000"),
		oa("tokens", "rate_limit_exceeded", "Too large."), TooLarge, "", "", "rate_limit_exceeded", 0, false,
	},
	{
		"retries_unwanted_and_something_used", NameCompatible, 429,
		header("X-Should-Retry", "false", "X-Ratelimit-Limit-Tokens", "6000", "X-Ratelimit-Remaining-Tokens", "0"),
		oa("tokens", "rate_limit_exceeded", "Wait."), Transient, "", Tokens, "rate_limit_exceeded", 0, false,
	},
	{
		"an_error_within_a_stream", NameCompatible, 200, header("Content-Type", "text/event-stream"),
		"data: {\"error\":{\"code\":429,\"message\":\"Rate limited\"}}\n\n", Transient, "", "", "", 0, true,
	},
	{
		"a_response_that_failed", NameCompatible, 200, header("Content-Type", "text/event-stream"),
		"event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"slow_down\"}}}\n\n",
		Acceleration, "", "", "slow_down", 0, true,
	},
	{
		"an_error_that_is_a_word", NameCompatible, 503, nil, `{"error":"model is loading"}`, Overload, "", "", "", 0, true,
	},
	{
		"another_error_within_a_stream", NameCompatible, 200, header("Content-Type", "text/event-stream"),
		"data: {\"error\":\"insufficient_quota\"}\n\n", Other, "", "", "", 0, false,
	},
	{
		"a_chunk_without_error", NameCompatible, 200, header("Content-Type", "text/event-stream"),
		"data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"error\"}}]}\n\n", None, "", "", "", 0, false,
	},
}
