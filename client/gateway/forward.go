package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/internal/header"
	"github.com/quorlease/quorlease/client/gateway/internal/out"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/replay"
	"github.com/quorlease/quorlease/client/gateway/spent"
	"github.com/quorlease/quorlease/client/gateway/stream"
	"github.com/quorlease/quorlease/client/report"
)

// sending is one try that was permitted and paid.
type sending struct {
	call   *call
	held   *charge.Charge
	permit *circuit.Try
	try    int
	// hidden: the client has not asked for the usage that the provider was asked for.
	hidden bool
	meter  *spent.Meter
	// sent: the provider may have read something of it.
	sent atomic.Bool
}

// forward sends a request and passes on what comes.
func (c *call) forward(ctx context.Context, to out.Sink, s *sending) (*again, error) {
	g := c.gateway
	// A try that says nothing about limits; only the first call counts.
	defer func() { s.permit.Done(g.now(), circuit.Other, 0) }()
	s.meter = spent.New(c.body.request.Input)
	ctx, done := c.lasting(ctx)
	defer done()
	request := s.request(ctx)
	g.counts.forwarded.Add(1)
	answer, err := g.upstream.RoundTrip(request)
	if err != nil {
		return nil, s.unanswered(ctx, err)
	}
	defer answer.Body.Close()
	s.sent.Store(true)
	c.unbounded(answer)
	switch code := answer.StatusCode; {
	case code < 200 || code/100 == 3 || code > 599:
		// A client that followed it would leave the gateway, with its key.
		s.refused()
		return nil, &refusedError{refusal: c.unusable("the provider has answered what is passed on to nobody")}
	case code/100 != 2:
		return s.failed(answer, to)
	}
	if format, is := stream.FormatOf(answer.Header.Get("Content-Type"), c.route.Streams); is {
		return s.events(ctx, answer, format, to)
	}
	return nil, s.whole(ctx, answer, to)
}

// begin begins an answer. Nothing is tried again from here on.
func (c *call) begin(to out.Sink, h out.Head) {
	c.body.leave()
	if c.home != nil {
		h.Header.Set(header.Fallback, c.deployment.Name)
	}
	to.Begin(h)
}

// unusable is the refusal where there is trouble with the provider.
func (c *call) unusable(detail string) refuse.Refusal {
	return refuse.Refusal{Reason: refuse.Capacity, Scope: "deployment", Detail: detail}
}

// unanswered is a try to which nothing came. What was sent may have been worked on.
func (s *sending) unanswered(ctx context.Context, err error) error {
	c := s.call
	if s.sent.Load() {
		s.settle(s.meter.Cut())
	} else {
		s.held.Release()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.gateway.said.Due(time.Now()) {
		c.gateway.config.Logger.Warn("a provider did not answer", "deployment", c.deployment.Name, "error", err)
	}
	return &refusedError{
		refusal: c.unusable("the provider can't be reached"), passes: true, cause: fallback.UnreachedIf(!s.sent.Load()),
	}
}

const (
	// errorWithin is how long the body of an error may take, of which a little is enough.
	errorWithin = 5 * time.Second
)

// failed is an answer that is an error: one that may pass, one that is told in the
// gateway's words, or the provider's own affair, which is passed on as it is.
func (s *sending) failed(answer *http.Response, to out.Sink) (*again, error) {
	late := time.AfterFunc(errorWithin, func() { _ = answer.Body.Close() })
	text, err := io.ReadAll(io.LimitReader(answer.Body, provider.BodyMax))
	late.Stop()
	verdict := s.classify(answer, text, nil)
	if next, err := s.no(&verdict); next != nil || err != nil {
		return next, err
	}
	s.refused()
	c := s.call
	if no := c.unpassable(answer); no != nil {
		return nil, no
	}
	c.begin(to, out.Head{Status: answer.StatusCode, Header: header.Passable(answer)})
	if _, failed := to.Write(text); failed != nil {
		return nil, failed
	}
	if err == nil {
		body := out.NewLively(answer.Body)
		defer body.Stop()
		err = out.Copy(to, body)
	}
	return nil, err
}

// no takes in that a provider has refused: it returns another try, a refusedError where that is
// not worth it, or neither where it was no refusal.
func (s *sending) no(v *provider.Verdict) (*again, error) {
	refusal, is := refuse.Upstream(v)
	if !is {
		return nil, nil //nolint:nilnil // there is nothing to be done about it
	}
	s.refused()
	if !v.MayRetry() {
		return nil, &refusedError{refusal: refusal}
	}
	after := s.call.class.Manner.Pause(s.call.set.Pauses, v.Wait, s.try, s.call.gateway.config.Draw)
	return &again{after: after, refusal: refusal, cause: fallback.Refused}, nil
}

// classify says what an answer means, and tells everybody who has to know.
func (s *sending) classify(answer *http.Response, text []byte, f *stream.Frame) provider.Verdict {
	c := s.call
	verdict := s.verdict(answer, text, f)
	count(c.gateway.counts.answers[:], verdict.Class)
	var hint time.Duration
	if verdict.Wait.Said {
		hint = verdict.Wait.For
	}
	outcome := outcomeOf(&verdict)
	s.permit.Done(c.gateway.now(), outcome, hint)
	if outcome == circuit.Succeeded {
		c.set.balances[c.deployment].refund(c.set.RetryTokens)
	}
	c.tell(&verdict)
	if outcome == circuit.Throttled || outcome == circuit.Overloaded {
		// What is held must not be spent against a provider that has just said no (S1-05).
		s.held.Throttled(hint)
		c.gateway.config.Authority.TriesOf(c.who.Client).Done(report.Outcome{
			Throttled: outcome == circuit.Throttled, Error: strconv.Itoa(answer.StatusCode),
		})
	}
	return verdict
}

// verdict is what an answer means: its text, or an event of it.
func (s *sending) verdict(answer *http.Response, text []byte, f *stream.Frame) provider.Verdict {
	a := provider.Answer{
		Status: answer.StatusCode, Header: answer.Header, Body: text,
		Wall: time.Now(), Configured: s.call.deployment.PerMinute,
	}
	if f != nil {
		a.Body, a.Event, a.Fault, a.Framed = f.Data, f.Event, f.Fault, true
	}
	return s.call.deployment.Provider.Classify(a)
}

// outcomeOf is what an answer says to a circuit.
func outcomeOf(v *provider.Verdict) circuit.Outcome {
	switch v.Class {
	case provider.None:
		return circuit.Succeeded
	case provider.Transient, provider.Acceleration, provider.Adapt, provider.LongWindow:
		return circuit.Throttled
	case provider.Overload:
		return circuit.Overloaded
	default:
		return circuit.Other
	}
}

// tell lets the authority know what an answer means. That the money is used up of an account
// that only this client has is nobody else's business, and nobody's where the deployment has
// another account since the call began.
func (c *call) tell(v *provider.Verdict) {
	if v.Class == provider.HardQuota && (c.isForeign() || !c.gateway.live.Load().pays(c.deployment)) {
		return
	}
	c.gateway.teller.Tell(c.about, v)
}

// whole passes on an answer that is no stream of events.
func (s *sending) whole(ctx context.Context, answer *http.Response, to out.Sink) error {
	s.classify(answer, nil, nil)
	s.meter.Header(answer.Header)
	s.call.begin(to, out.Head{Status: answer.StatusCode, Header: header.Passable(answer)})
	body := out.NewLively(answer.Body)
	defer body.Stop()
	pieces := io.Writer(to)
	if answer.ContentLength < 0 {
		// It comes in pieces that somebody may wait for.
		pieces = out.Flushing{Sink: to}
	}
	err := out.Copy(pieces, io.TeeReader(body, s.meter))
	if err == nil {
		err = to.Flush()
	}
	return s.finish(ctx, err)
}

// events passes on a stream. Its first event may say that the request has failed, although
// its status does not: nothing was passed on then.
func (s *sending) events(
	ctx context.Context, answer *http.Response, format stream.Format, to out.Sink,
) (*again, error) {
	body := out.NewLively(answer.Body)
	defer body.Stop()
	reader := stream.NewReader(body, stream.Options{Format: format})
	first, err := reader.First()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.unanswered(ctx, err)
	}
	verdict := s.classify(answer, nil, &first)
	if next, err := s.no(&verdict); next != nil || err != nil {
		return next, err
	}
	if verdict.Class == provider.Other {
		// It is an error all the same, of which nothing is billed.
		s.refused()
		if s.call.home != nil {
			return nil, errFallback(s.call)
		}
		s.call.turn.Spoil()
	}
	header := header.Passable(answer)
	// Events may be left out of it.
	header.Del("Content-Length")
	s.call.begin(to, out.Head{Status: answer.StatusCode, Header: header})
	relay := stream.Relay{To: to, Flush: to.Flush, HideUsage: s.hidden, Seen: func(f stream.Frame) {
		s.meter.Frame(f)
		if f.Fault || f.Event == "error" || bytes.Contains(f.Data, []byte(`"error"`)) {
			s.late(answer, f)
		}
	}}
	return nil, s.finish(ctx, relay.Run(ctx, reader))
}

// late is an error in the middle of a stream: the client sees it as it is, and the
// authority hears of it.
func (s *sending) late(answer *http.Response, f stream.Frame) {
	c := s.call
	verdict := s.verdict(answer, nil, &f)
	if verdict.Class != provider.None {
		c.turn.Spoil()
	}
	if verdict.Class != provider.None && verdict.Class != provider.Other {
		c.tell(&verdict)
	}
}

// finish settles what was used, however the answer ended.
func (s *sending) finish(ctx context.Context, err error) error {
	if err != nil || ctx.Err() != nil {
		s.settle(s.meter.Cut())
		return err
	}
	s.settle(s.meter.End())
	return nil
}

// settle says what was used. Where nobody knows it, what was charged stays.
func (s *sending) settle(u spent.Usage) {
	c := s.call
	if u.State == spent.None {
		s.held.Settle(nil)
		c.aside.Keep(time.Now())
		return
	}
	used := u.Counted()
	used.Model = c.route.model
	s.held.Settle(c.money(c.deployment.Provider.Counting.Settle(used), u))
	if u.State == spent.Complete {
		c.gateway.estimates.Learn(c.who.Tenant, c.route.model, c.body.request.Input, u.Input)
	}
}

// refused settles a request that the provider has not worked on: no token of it is billed,
// though some count the request.
func (s *sending) refused() {
	used := s.call.deployment.Provider.Counting.Settle(provider.Usage{Refused: true})
	s.held.Settle(s.call.money(used, spent.Usage{}))
}

// request is what is sent.
func (s *sending) request(ctx context.Context) *http.Request {
	c := s.call
	text := c.body.bytes
	if c.body.request.Stream && s.asksUsage() {
		asking, asked, err := stream.AskUsage(text)
		if err == nil {
			text, s.hidden = asking, !asked
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.sent.Store(true) }})
	to := c.target()
	request := &http.Request{
		Method: c.request.Method, URL: to, Host: to.Host, Header: c.headers(), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(text) > 0 {
		// Without GetBody: what is sent again is sent by the gateway, which counts and pays for it.
		request.Body, request.ContentLength = &out.Spoken{Rest: text}, int64(len(text))
	} else if len(request.Header[replay.Header]) > 0 {
		// Of what has a key and no body net/http would take it upon itself.
		request.Body = &out.Spoken{}
	}
	return request.WithContext(ctx)
}

// asksUsage says whether the provider reports what a stream used only where it is asked.
func (s *sending) asksUsage() bool {
	c := s.call
	return !c.deployment.NoUsage && c.shadow == nil && c.route.Body == provider.OpenAIBody &&
		(c.route.Kind == provider.Chat || c.route.Kind == provider.Completions)
}
