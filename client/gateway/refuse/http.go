package refuse

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/httpmw"
)

// Asker is what decides in which form a refusal is told.
type Asker struct {
	// Body is what the route's clients expect (provider.Route). Zero: the route is none
	// of a provider's.
	Body provider.Body
	// Accept is the request's header. Where it names application/problem+json that is
	// what it gets.
	Accept string
	// RequestID names the request in our logs. Empty: it has none.
	RequestID string
}

// The headers of refusals.
const (
	headerRetryAfter   = "Retry-After"
	headerRetryAfterMs = "Retry-After-Ms"
	headerShouldRetry  = "X-Should-Retry"
	headerBudget       = "X-Retry-Budget-Exceeded"
	headerQueueTimeout = "X-Queue-Timeout"
	contentJSON        = "application/json"
	contentProblem     = "application/problem+json"
)

// Answer is an HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// HTTP is the answer to a request that does not pass. draw is asked once, if at all.
func (r *Refusal) HTTP(to Asker, draw Draw) Answer {
	row, hint := r.Reason.row(), r.Hint(draw)
	a := Answer{Status: row.status, Header: http.Header{}}
	if hint.Said {
		a.Header.Set(headerRetryAfter, strconv.FormatInt(hint.Seconds(), 10))
		a.Header.Set(headerRetryAfterMs, strconv.FormatInt(hint.Wait.Milliseconds(), 10))
	}
	if hint.Stop {
		a.Header.Set(headerShouldRetry, "false")
	}
	switch {
	case row.hint == minute:
		a.Header.Set(headerBudget, "true")
	case r.Reason == WaitExpired:
		a.Header.Set(headerQueueTimeout, "true")
	case r.Reason == Unidentified:
		a.Header.Set("Www-Authenticate", `Bearer realm="quorlease"`)
	}
	setLimits(a.Header, r.told(), hint.Wait)
	a.Header.Set("Cache-Control", "no-store")
	content, body := r.body(to, hint, &a)
	a.Header.Set("Content-Type", content)
	text, err := json.Marshal(body)
	if err != nil {
		// Strings and numbers always have an encoding.
		text = nil
	}
	a.Body = append(text, '\n')
	return a
}

// Write sends an answer. What is in w's header already stays, unless the answer has
// it too.
func (a *Answer) Write(w http.ResponseWriter) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

func (r *Refusal) body(to Asker, hint Hint, a *Answer) (content string, body any) {
	switch {
	case wantsProblem(to.Accept):
	case to.Body == provider.OpenAIBody:
		return contentJSON, r.openAI(hint)
	case to.Body == provider.AnthropicBody:
		return contentJSON, r.anthropic(to, hint)
	case to.Body == provider.GoogleBody:
		return contentJSON, r.google(hint)
	case to.Body == provider.AWSBody:
		return contentJSON, r.aws(a, hint)
	}
	return contentProblem, r.problem(hint)
}

// openAIError is the form of OpenAI, and of what speaks as it does.
type openAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

func (r *Refusal) openAI(hint Hint) (e openAIError) {
	row := r.Reason.row()
	e.Error.Message, e.Error.Type, e.Error.Code = r.message(hint), row.openAI, row.word
	if param := r.param(); param != "" {
		e.Error.Param = &param
	}
	return e
}

// anthropicError is Anthropic's form.
type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string           `json:"type"`
		Message string           `json:"message"`
		Details anthropicDetails `json:"details"`
	} `json:"error"`
	RequestID *string `json:"request_id"`
}

type anthropicDetails struct {
	Code string `json:"error_code"`
}

// anthropicSpent is Anthropic's own word for what has no other: clients that know it
// stop.
const anthropicSpent = "enforced_spend_limit_reached"

func (r *Refusal) anthropic(to Asker, hint Hint) (e anthropicError) {
	row := r.Reason.row()
	e.Type, e.Error.Type, e.Error.Message, e.Error.Details.Code = "error", row.anthropic, r.message(hint), row.word
	if r.Reason == SpendCap {
		e.Error.Details.Code = anthropicSpent
	}
	if to.RequestID != "" {
		e.RequestID = &to.RequestID
	}
	return e
}

func (r *Refusal) problem(hint Hint) httpmw.Problem {
	row := r.Reason.row()
	p := httpmw.Problem{
		Type: row.problem, Title: http.StatusText(row.status), Status: row.status, Detail: r.message(hint),
		Reason: row.name, Scope: visible(r.Scope), ViolatedPolicies: r.violated(),
	}
	if hint.Said {
		p.RetryAfter = hint.Seconds()
	}
	for _, policy := range r.told() {
		if policy.Reason != "" {
			p.Denials = append(p.Denials, httpmw.Denial{
				Limit: policy.Limit, Dimension: policy.Dimension, Reason: policy.Reason,
			})
		}
	}
	return p
}

// acceptMax bounds what of an Accept header is looked at.
const acceptMax = 4 << 10

// wantsProblem says whether an Accept header names application/problem+json. That it
// takes anything is no wish.
func wantsProblem(accept string) bool {
	for part := range strings.SplitSeq(accept[:min(len(accept), acceptMax)], ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || kind != contentProblem {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if params["q"] == "" || err == nil && q > 0 {
			return true
		}
	}
	return false
}
