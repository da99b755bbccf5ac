// Package httpmw asks a Quorlease client about every HTTP request that a server
// gets, and refuses those that are denied with 429 Too Many Requests.
//
// Where nobody answers the client decides by itself (it fails open), within its
// deadline: what it grants passes like anything else.
//
// What is charged, and which attempt it is, is the caller's to say (Config.Request). Package
// client/gateway/gate finds out itself who calls and which attempt it is.
package httpmw

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quorlease/quorlease/client"
)

// Decider is a client, as far as this package needs it. *client.Client is one.
type Decider interface {
	Acquire(ctx context.Context, r client.Request) (*client.Decision, error)
}

// Config says what requests are charged.
type Config struct {
	// Decider decides. Required.
	Decider Decider
	// Request says what a request is charged; not charged, it passes. Required. See
	// ByKey. It reads the request's body only if it puts it back.
	Request func(*http.Request) (charge client.Request, charged bool)
	// OnError hears of requests that could not be decided: one that asks for what
	// there is not (client.BadRequestError), an unknown limit, a closed client. It
	// is not called because nodes are away: that is decided. True lets the request
	// pass. Nil, or false: it is refused, with 400 where it is the request's own
	// fault and 503 where not.
	OnError func(*http.Request, error) (pass bool)
}

// ByKey charges each request one token of the dimension "requests" of a limit.
// key says which instance of the limit counts, such as a tenant; nil is for a
// limit without keys. What callers choose freely, like a header that nobody
// checks, is no key: they would choose another.
func ByKey(limit string, key func(*http.Request) string) func(*http.Request) (client.Request, bool) {
	return func(r *http.Request) (client.Request, bool) {
		charge := client.Charge{Limit: limit, Dimension: "requests", Amount: 1}
		if key != nil {
			charge.Key = key(r)
		}
		return client.Request{Charges: []client.Charge{charge}}, true
	}
}

// New returns the middleware. The handler behind it finds the decision with
// FromContext; a tracked lease is its own to settle.
func New(c Config) (func(http.Handler) http.Handler, error) {
	var problems []error
	if c.Decider == nil {
		problems = append(problems, errors.New("decider: missing"))
	}
	if c.Request == nil {
		problems = append(problems, errors.New("request: missing"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("middleware configuration: %w", err)
	}
	return func(next http.Handler) http.Handler { return &handler{Config: c, next: next} }, nil
}

type handler struct {
	Config
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	charge, charged := h.Request(r)
	if !charged {
		h.next.ServeHTTP(w, r)
		return
	}
	decision, err := h.Decider.Acquire(r.Context(), charge)
	switch {
	case err != nil && h.OnError != nil && h.OnError(r, err):
		h.next.ServeHTTP(w, r)
	case err != nil:
		problemOf(err).write(w)
	case !decision.Granted:
		refusal(decision).write(w)
	default:
		h.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), decisionKey{}, decision)))
	}
}

type decisionKey struct{}

// FromContext is the decision that let a request pass, from the context of the
// request that the handler gets; nil where it was not charged. Its Source is
// client.Local where the client decided by itself.
func FromContext(ctx context.Context) *client.Decision {
	decision, _ := ctx.Value(decisionKey{}).(*client.Decision)
	return decision
}
