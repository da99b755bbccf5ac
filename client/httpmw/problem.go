package httpmw

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/quorlease/quorlease/client"
)

// Problem is the body of a refusal, as RFC 9457 has it (application/problem+json).
// It names no key: that may be somebody's name.
type Problem struct {
	// Type is the URI of the kind of problem. Empty: the status says it all.
	Type string `json:"type,omitempty"`
	// Title and Status are those of the HTTP status.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is one sentence.
	Detail string `json:"detail"`
	// Reason is the first denial's: RATE, RETRY_BUDGET and so on.
	Reason string `json:"reason,omitempty"`
	// RetryAfter is as the header has it, in seconds, and absent where no waiting
	// helps.
	RetryAfter int64 `json:"retry_after,omitempty"`
	// Denials are all of them, the longest wait first.
	Denials []Denial `json:"denials,omitempty"`
	// Scope is whom the limit is for beside the one who asked: "deployment".
	Scope string `json:"scope,omitempty"`
	// ViolatedPolicies are those of the RateLimit-Policy field that refuse.
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
}

// Denial is one limit's no.
type Denial struct {
	Limit     string `json:"limit,omitempty"`
	Dimension string `json:"dimension,omitempty"`
	Reason    string `json:"reason"`
}

// refusal is what a denied request is told.
func refusal(d *client.Decision) Problem {
	p := problem(http.StatusTooManyRequests, "No waiting helps.")
	if wait, never := d.RetryAfter(); !never {
		p.RetryAfter = Seconds(wait)
		p.Detail = "Try again in " + strconv.FormatInt(p.RetryAfter, 10) + " s."
	}
	for _, denial := range d.Denials {
		p.Denials = append(p.Denials, Denial{denial.Limit, denial.Dimension, denial.Reason})
	}
	if len(p.Denials) > 0 {
		p.Reason = p.Denials[0].Reason
	}
	return p
}

// problemOf is what a request is told that could not be decided. What went wrong
// inside is nobody's business outside.
func problemOf(err error) Problem {
	var bad *client.BadRequestError
	if errors.As(err, &bad) {
		return problem(http.StatusBadRequest, "The request can't be counted: "+bad.Error())
	}
	return problem(http.StatusServiceUnavailable, "The request could not be checked against its limit.")
}

func problem(status int, detail string) Problem {
	return Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// Seconds is a wait in whole seconds, rounded up and at least one: the header
// knows no less, and 0 would call the next one in at once.
func Seconds(wait time.Duration) int64 {
	whole := int64(wait / time.Second)
	if wait%time.Second > 0 {
		whole++
	}
	return max(whole, 1)
}

func (p Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		// Strings and numbers always have an encoding.
		body = nil
	}
	header := w.Header()
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
