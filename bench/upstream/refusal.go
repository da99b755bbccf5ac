package upstream

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// Cause is what a call is refused for. Where a provider has a code for it, it is
// the code.
type Cause string

// What calls are refused for. Each provider knows some of them.
const (
	Requests    Cause = "requests"
	InputTokens Cause = "input_tokens"
	// OutputTokens and the input are limits of their own at Anthropic alone.
	OutputTokens Cause = "output_tokens"
	Concurrent   Cause = "concurrent"
	SlowDown     Cause = "slow_down"
	// TooLarge never fits, however long one waits.
	TooLarge Cause = "too_large"
	Overload Cause = "overload"
	// Unavailable is Azure's second word for an overload.
	Unavailable Cause = "unavailable"

	// SpendCap is the spend cap that the provider has today; the others are its other
	// and older names, and what is like it.
	SpendCap            Cause = "spend_cap"
	CreditBalance       Cause = "credit_balance_exhausted"
	ProjectSpend        Cause = "project_spend_limit_exceeded"
	OrganizationUsage   Cause = "organization_usage_limit_exceeded"
	InsufficientQuota   Cause = "insufficient_quota"
	BillingHardLimit    Cause = "billing_hard_limit_reached"
	SpecifiedLimit      Cause = "specified_usage_limits"
	WorkspaceLimit      Cause = "specified_workspace_usage_limits"
	CreditBalanceTooLow Cause = "credit_balance_too_low"
	Billing             Cause = "billing_error"

	// Daily is a quota of a day.
	Daily Cause = "daily"

	Unauthorized Cause = "unauthorized"
	Malformed    Cause = "malformed"
	NotFound     Cause = "not_found"
	BodyTooLarge Cause = "body_too_large"
	Closed       Cause = "closed"
)

// refusal is one answer as a provider gives it: {model}, {limit}, {used},
// {requested}, {wait}, {resume} and {detail} in the message are filled in.
type refusal struct {
	status        int
	kind, code    string
	message       string
	detailsCode   string
	neverRetry    bool
	waitIfUnnamed time.Duration
}

// denial is a refusal with what is particular about it.
type denial struct {
	cause  Cause
	wait   time.Duration
	detail string
	// call is what was asked for, and state what was left.
	call  provider.Call
	state provider.State
}

// causeOf is what the account's answer says.
func causeOf(answer provider.Answer) Cause {
	switch answer.Reason {
	case provider.SlowDown:
		return SlowDown
	case provider.SpendCap:
		return SpendCap
	case provider.Concurrent:
		return Concurrent
	case provider.Daily:
		return Daily
	case provider.Exhausted:
	}
	if answer.RetryAfter == 0 {
		return TooLarge
	}
	return Cause(answer.Binding)
}

// message fills in what the text of a refusal leaves open.
func (d denial) message(r refusal, model string, start time.Time, now time.Duration) string {
	limit, left := d.state.Limits.Input, d.state.Remaining.Input
	switch d.cause {
	case Requests:
		limit, left = d.state.Limits.Requests, d.state.Remaining.Requests
	case OutputTokens:
		limit, left = d.state.Limits.Output, d.state.Remaining.Output
	default:
	}
	today := start.Add(now).UTC()
	resume := time.Date(today.Year(), today.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	return strings.NewReplacer(
		"{model}", model, "{limit}", strconv.FormatInt(limit, 10), "{used}", strconv.FormatInt(max(0, limit-left), 10),
		"{requested}", strconv.FormatInt(d.call.Input+d.call.Output, 10), "{wait}", d.wait.String(),
		"{resume}", resume.Format(time.DateOnly), "{detail}", d.detail,
	).Replace(r.message)
}

// body is a refusal in the provider's shape.
func (r refusal) body(api API, wait time.Duration, message, id string) map[string]any {
	if api.isCloud() {
		return r.cloudBody(api, message, wait)
	}
	if api == Anthropic {
		failure := map[string]any{"type": r.kind, "message": message}
		if r.detailsCode != "" {
			failure["details"] = map[string]any{"error_code": r.detailsCode}
		}
		return map[string]any{"type": "error", "error": failure, "request_id": id}
	}
	if api == Azure && r.kind == "" {
		return map[string]any{"error": map[string]any{"code": r.code, "message": message}}
	}
	return map[string]any{"error": map[string]any{
		"message": message, "type": r.kind, "param": nil, "code": orNull(r.code),
	}}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// hint writes how long to wait, as each provider does, and that there is no use in
// it.
func (r refusal) hint(h http.Header, api API, wait time.Duration) {
	if api == Bedrock {
		h.Set("x-amzn-errortype", r.kind+amzError)
	}
	if api.isCloud() {
		return
	}
	if r.neverRetry {
		h.Set("x-should-retry", "false")
	}
	if wait == 0 {
		wait = r.waitIfUnnamed
	}
	if wait <= 0 {
		return
	}
	h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	if api != Anthropic {
		h.Set("retry-after-ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
}
