package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/coalesce"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/internal/address"
	"github.com/quorlease/quorlease/client/gateway/internal/header"
	"github.com/quorlease/quorlease/client/gateway/internal/out"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/replay"
	"github.com/quorlease/quorlease/client/gateway/shadow"
	"github.com/quorlease/quorlease/client/gateway/told"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// route is where a request goes for its provider.
type route struct {
	provider.Match
	model string
}

// call is one request.
type call struct {
	gateway *Gateway
	// set are the settings when it began.
	set        *settings
	request    *http.Request
	who        who.Identity
	class      *Class
	deployment *Deployment
	route      route
	// home is the deployment in whose place this one is asked, with money set aside for it. Nil:
	// it is its own.
	home  *Deployment
	aside *fallback.Hold
	// about says what it is.
	about   told.About
	body    body
	attempt attempt.Call
	circuit *circuit.Call
	// patience is for how much longer it may wait: in queues and between tries. How long a
	// provider takes is no waiting.
	patience time.Duration
	asker    refuse.Asker
	// turn records the answer of the first request with an idempotency key, nil for others.
	turn *replay.Turn
	// aborted: the answer ended before its end.
	aborted bool
	// shadow is where is noted what nobody is told. Nil: it is no shadow.
	shadow *shadow.Call
}

// ServeHTTP answers one request: with what its provider says, or with a refusal. An answer
// that can't be finished ends the connection, by http.ErrAbortHandler, so that nobody takes
// a part of it for the whole.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.counts.requests.Add(1)
	c := &call{gateway: g, set: g.live.Load(), asker: refuse.Asker{Accept: r.Header.Get("Accept")}}
	ctx, leave, open := g.enter(r.Context())
	defer leave()
	c.request = r.WithContext(ctx)
	if !open {
		c.refuse(w, &refuse.Refusal{Reason: refuse.Capacity, Detail: "the gateway is being stopped"})
		return
	}
	if c.set.Shadow {
		c.mirror(w) //nolint:contextcheck // the request has it
		return
	}
	c.serve(ctx, w)
	if c.aborted {
		panic(http.ErrAbortHandler)
	}
}

// enter counts a request in that ends with the gateway. It is false once that is closed.
func (g *Gateway) enter(ctx context.Context) (_ context.Context, leave func(), open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return ctx, func() {}, false
	}
	g.serving.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.life, cancel)
	return ctx, func() {
		stop()
		cancel()
		g.serving.Done()
	}, true
}

// serve finds out who asks and what for.
func (c *call) serve(ctx context.Context, w http.ResponseWriter) {
	g, r := c.gateway, c.request
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace || !address.IsPlain(r.URL.Path) {
		c.refuse(w, &refuse.Refusal{Reason: refuse.Malformed, Param: "path", Detail: "the path has empty or dotted segments"})
		return
	}
	c.asker.Body = c.set.form(r.URL.Path)
	identity, refusal := c.set.Who.Identify(r)
	if refusal != nil {
		c.refuse(w, refusal)
		return
	}
	c.who, c.class = identity, c.set.class(identity.Class)
	if c.shadow == nil {
		c.patience = c.class.MaxWait
	}
	for _, warning := range identity.Warnings {
		w.Header().Add(header.Warning, warning)
	}
	if r.Method != http.MethodPost || c.asker.Body == provider.ProblemBody {
		c.pass(ctx, w)
		return
	}
	var err error
	c.body, err = g.read(r, c.set, c.who.Client)
	defer c.body.leave()
	if err != nil {
		refusal := unreadable(err)
		c.refuse(w, &refusal)
		return
	}
	c.work(ctx, w)
}

// form is the form of errors that the clients of a path expect.
func (s *settings) form(path string) provider.Body {
	look := routing{path: path}
	for i := range s.Deployments {
		if match, ok := look.at(s.Deployments[i].Provider); ok {
			return match.Body
		}
	}
	return provider.ProblemBody
}

// work is a request whose body was read, from its attempt to its answer.
func (c *call) work(ctx context.Context, w http.ResponseWriter) {
	g := c.gateway
	var found bool
	c.deployment, c.route, found = c.set.find(c.request.URL.Path, c.body.request.Model)
	if !found {
		c.refuse(w, &refuse.Refusal{
			Reason: refuse.Malformed, Param: "model", Detail: "no deployment of this gateway has the model",
		})
		return
	}
	c.asker.Body = c.route.Body
	if no := c.signed(); no != nil {
		c.refuse(w, no)
		return
	}
	c.describe()
	key, ok := c.readKey(w)
	// What is given again is no attempt, asks nobody, and may be had while a circuit is open.
	if !ok || !c.begins(w, key, c.body.sums.Exact) {
		return
	}
	defer func() { c.turn.End(false) }()
	declared := c.set.markers.Read(c.request.Header)
	if advice := g.attempts.Advise(g.now(), c.who.Client, declared); advice != "" && c.shadow == nil {
		w.Header().Add(header.Warning, advice)
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
	c.circuit = g.board.Call(c.who.Tenant, c.deployment.Name, c.class.Closed)
	// Nobody queues for what is closed.
	falls := c.class.Manner.FallsBack() && len(c.deployment.Fallback.To) > 0
	if v := c.circuit.Look(g.now()); v.Action == circuit.Shed && !falls {
		refusal := c.closed(v)
		outcome = attempt.Throttled
		c.refuse(w, &refusal)
		return
	}
	outcome = c.answer(ctx, w)
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
func (c *call) answer(ctx context.Context, w http.ResponseWriter) attempt.Outcome {
	if !c.isShared() {
		if c.attempt.Duplicate {
			c.gateway.counts.repeated.Add(1)
		}
		return c.alone(ctx, w)
	}
	// It goes on for others when this request has ended.
	mine, began := *c, time.Now()
	work := func(ctx context.Context, to *coalesce.Writer[out.Head]) error {
		mine.waited(began)
		mine.body.enter()
		defer mine.body.leave()
		return mine.lead(ctx, out.Shared{Writer: to})
	}
	if reader, ok := c.gateway.group.Join(ctx, c.equal(), work); ok {
		defer reader.Close()
		return c.follow(ctx, w, reader)
	}
	return c.alone(ctx, w)
}

// alone does the work for nobody else.
func (c *call) alone(ctx context.Context, w http.ResponseWriter) attempt.Outcome {
	to := out.New(w, c.request)
	defer to.End()
	if c.turn != nil {
		return c.recorded(ctx, w, to)
	}
	err := c.lead(ctx, to)
	return c.ended(w, err, to.Status())
}

// isShared says whether its answer may be somebody else's, too. Two keys are two pieces of work,
// however equal.
func (c *call) isShared() bool {
	return !c.set.NoSharing && c.shadow == nil && c.request.Header.Get("X-Coalesce") != "false" &&
		len(c.request.Header[replay.Header]) == 0
}

// telling are headers that an answer depends on beside its body: what form it has, and whose
// account it is.
var telling = []string{
	"Accept", "Content-Type", "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key",
	"Openai-Organization", "Openai-Project",
	"Openai-Beta", "Anthropic-Version", "Anthropic-Beta",
}

// equal is what requests have in common that are given one answer. How long they may wait
// is among it: nobody waits longer because of who came first. So are where it goes and the
// settings: nobody that begins under new ones is answered under old ones.
func (c *call) equal() coalesce.Key {
	what := []string{c.who.Class, c.deployment.Name, strconv.FormatUint(c.set.generation, 10)}
	for _, name := range telling {
		what = append(what, strings.Join(c.request.Header[name], "\x00"))
	}
	return coalesce.Key{
		Tenant: c.who.Shares(), Route: c.request.Method + " " + c.request.URL.RequestURI(), Model: c.route.model,
		Body: c.gateway.hasher.Join(c.body.sums.Exact, what...), Stream: c.body.request.Stream || c.route.Streams,
	}
}

// follow passes on an answer that may be others' as well.
func (c *call) follow(ctx context.Context, w http.ResponseWriter, from *coalesce.Reader[out.Head]) attempt.Outcome {
	began := time.Now()
	h, err := from.Meta(ctx)
	var no *refusedError
	switch {
	case err == nil:
	case errors.As(err, &no) && !from.Leads() && no.isPersonal():
		// That was the other one's fault.
		c.waited(began)
		return c.alone(ctx, w)
	default:
		return c.ended(w, err, 0)
	}
	// Whoever works on it has a copy.
	c.body.leave()
	to := out.New(w, c.request)
	defer to.End()
	to.Begin(h)
	for {
		piece, err := from.Next(ctx)
		if errors.Is(err, io.EOF) {
			return c.ended(w, nil, to.Status())
		}
		if err == nil {
			_, err = to.Write(piece)
		}
		if err == nil {
			err = to.Flush()
		}
		if err != nil {
			return c.ended(w, err, to.Status())
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
		// Should there be somebody all the same, nothing is no answer.
		c.gateway.counts.gone.Add(1)
		c.aborted = true
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
	if c.shadow != nil {
		return c.unsaid(r)
	}
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
