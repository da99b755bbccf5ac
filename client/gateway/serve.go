package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/coalesce"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// warningHeader tells a client, or who runs it, what will go wrong one day.
const warningHeader = "X-Quorlease-Warning"

// route is where a request goes for its provider.
type route struct {
	provider.Match
	model string
}

// call is one request.
type call struct {
	gateway    *Gateway
	request    *http.Request
	who        who.Identity
	class      *Class
	deployment *Deployment
	route      route
	body       body
	attempt    attempt.Call
	circuit    *circuit.Call
	// until is when it has waited for as long as it may.
	until time.Time
	asker refuse.Asker
	// aborted: the answer ended before its end.
	aborted bool
}

// ServeHTTP answers one request: with what its provider says, or with a refusal. An answer
// that can't be finished ends the connection, by http.ErrAbortHandler, so that nobody takes
// a part of it for the whole.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.counts.requests.Add(1)
	c := &call{gateway: g, request: r, asker: refuse.Asker{Accept: r.Header.Get("Accept")}}
	identity, refusal := g.config.Who.Identify(r)
	if refusal != nil {
		c.asker.Body = g.form(r.URL.Path)
		c.refuse(w, refusal)
		return
	}
	c.who, c.class = identity, g.class(identity.Class)
	c.until = time.Now().Add(c.class.MaxWait)
	for _, warning := range identity.Warnings {
		w.Header().Add(warningHeader, warning)
	}
	if !g.isWork(r) {
		c.pass(w)
		return
	}
	var err error
	c.body, err = g.read(r)
	defer g.drop(&c.body)
	if err != nil {
		c.asker.Body = g.form(r.URL.Path)
		refusal := unreadable(err)
		c.refuse(w, &refusal)
		return
	}
	c.work(w)
	if c.aborted {
		panic(http.ErrAbortHandler)
	}
}

// isWork says whether a request is something that a model does.
func (g *Gateway) isWork(r *http.Request) bool {
	return r.Method == http.MethodPost && g.form(r.URL.Path) != provider.ProblemBody
}

// form is the form of errors that the clients of a path expect.
func (g *Gateway) form(path string) provider.Body {
	for i := range g.config.Deployments {
		if match, ok := g.config.Deployments[i].Provider.Route(path); ok {
			return match.Body
		}
	}
	return provider.ProblemBody
}

// work is a request whose body was read, from its attempt to its answer.
func (c *call) work(w http.ResponseWriter) {
	g := c.gateway
	var ok bool
	c.deployment, c.route, ok = g.find(c.request.URL.Path, c.body.request.Model)
	if !ok {
		c.asker.Body = g.form(c.request.URL.Path)
		c.refuse(w, &refuse.Refusal{
			Reason: refuse.Malformed, Param: "model", Detail: "no deployment of this gateway has the model",
		})
		return
	}
	c.asker.Body = c.route.Body
	declared := g.markers.Read(c.request.Header)
	if advice := g.attempts.Advise(g.now(), c.who.Client, declared); advice != "" {
		w.Header().Add(warningHeader, advice)
		g.config.Logger.Warn("a client retries by itself although the gateway does",
			"client", c.who.Client, "advice", advice)
	}
	c.attempt = g.attempts.Begin(g.now(), &attempt.Request{
		Client: c.who.Client, Deployment: c.deployment.Name, Declared: declared,
		Work: g.hasher.Join(c.body.sums.Work, c.request.Method, c.request.URL.Path),
		IDs:  attempt.ReadIDs(g.hasher, c.request.Header),
	})
	outcome := attempt.Canceled
	defer func() { c.attempt.End(g.now(), outcome) }()
	c.circuit = g.board.Call(c.who.Tenant, c.deployment.Name, c.who.Class)
	// Nobody queues for what is closed.
	if v := c.circuit.Look(g.now()); v.Action == circuit.Shed {
		refusal := c.closed(v)
		outcome = attempt.Throttled
		c.refuse(w, &refusal)
		return
	}
	outcome = c.answer(w)
}

// closed is the refusal of a circuit that is open.
func (c *call) closed(v circuit.Verdict) refuse.Refusal {
	r := refuse.Refusal{Reason: refuse.CircuitOpen, Wait: v.Left, Scope: "deployment"}
	if !v.Key.All {
		r.Scope = "tenant"
	}
	return r
}

// answer has the work done, by whoever is doing it already or else by itself, and passes
// its answer on. It returns how the attempt ended.
func (c *call) answer(w http.ResponseWriter) attempt.Outcome {
	ctx := c.request.Context()
	if c.isShared() {
		key := coalesce.Key{
			Tenant: c.who.Shares(), Route: c.request.Method + " " + c.request.URL.RequestURI(),
			Model: c.route.model, Body: c.body.sums.Exact, Stream: c.body.request.Stream,
		}
		work := func(ctx context.Context, to *coalesce.Writer[head]) error { return c.lead(ctx, writer{to}) }
		if reader, ok := c.gateway.group.Join(ctx, key, work); ok {
			defer reader.Close()
			return c.follow(ctx, w, reader)
		}
	}
	if !c.isShared() && c.attempt.Duplicate {
		c.gateway.counts.repeated.Add(1)
	}
	to := &direct{w: w, flusher: http.NewResponseController(w)}
	err := c.lead(ctx, to)
	return c.ended(w, err, to.status)
}

// isShared says whether its answer may be somebody else's, too.
func (c *call) isShared() bool {
	return !c.gateway.config.NoSharing && c.request.Header.Get("X-Coalesce") != "false"
}

// follow passes on an answer that may be others' as well.
func (c *call) follow(ctx context.Context, w http.ResponseWriter, from *coalesce.Reader[head]) attempt.Outcome {
	h, err := from.Meta(ctx)
	if err != nil {
		return c.ended(w, err, 0)
	}
	to := &direct{w: w, flusher: http.NewResponseController(w)}
	to.Begin(h)
	for {
		piece, err := from.Next(ctx)
		if errors.Is(err, io.EOF) {
			return c.ended(w, nil, to.status)
		}
		if err == nil {
			_, err = to.Write(piece)
		}
		if err == nil {
			err = to.Flush()
		}
		if err != nil {
			return c.ended(w, err, to.status)
		}
	}
}

// ended is the end of a request: of an answer that begun with a status, of one that was
// refused before, or of one that nobody waits for any more.
func (c *call) ended(w http.ResponseWriter, err error, status int) attempt.Outcome {
	var no *refusedError
	var bad *client.BadRequestError
	switch {
	case err == nil:
		return attempt.OutcomeOf(status)
	case c.request.Context().Err() != nil:
		c.gateway.counts.gone.Add(1)
		return attempt.Canceled
	case status != 0:
		c.gateway.counts.cut.Add(1)
		c.aborted = true
		return attempt.Failed
	case errors.As(err, &no):
		return c.refuse(w, &no.refusal)
	case errors.As(err, &bad):
		return c.refuse(w, &refuse.Refusal{Reason: refuse.Malformed, Param: bad.Field, Detail: bad.Error()})
	default:
		c.gateway.config.Logger.Error("a request could not be answered", "client", c.who.Client, "error", err)
		return c.refuse(w, &refuse.Refusal{Reason: refuse.Capacity})
	}
}

// refuse says no.
func (c *call) refuse(w http.ResponseWriter, r *refuse.Refusal) attempt.Outcome {
	count(c.gateway.counts.refused[:], r.Reason)
	if r.Reason == refuse.RetryBudget && r.Client == "" {
		r.Client = c.who.Client
	}
	answer := r.HTTP(c.asker, c.gateway.config.Draw)
	answer.Write(w)
	if r.Reason == refuse.RetryBudget || r.Reason == refuse.Attempts {
		return attempt.Refused
	}
	return attempt.OutcomeOf(answer.Status)
}
