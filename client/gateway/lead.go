package gateway

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/internal/lately"
	"github.com/quorlease/quorlease/client/gateway/internal/out"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/told"
	"github.com/quorlease/quorlease/client/session"
)

// refusedError is why nothing was passed on: the gateway's own no, or a provider's that
// clients are told in the gateway's words.
type refusedError struct {
	refusal refuse.Refusal
	// passes: another one's attempt may fare better.
	passes bool
	// cause is why another deployment may fare better.
	cause fallback.Cause
}

// Error names the reason.
func (e *refusedError) Error() string { return "refused: " + e.refusal.Reason.String() }

// isTransient says whether somebody who waits for the same may lead after a failure.
func isTransient(err error) bool {
	var no *refusedError
	return errors.As(err, &no) && no.passes
}

// again is a try that failed, or none yet, of a request that may be tried once more.
type again struct {
	// after is for how long to wait before, nothing being held.
	after   time.Duration
	refusal refuse.Refusal
	// cause is Refused, or Closed where it was not sent.
	cause fallback.Cause
}

// ownAttributes are those that the gateway says of each request.
var ownAttributes = []string{"client", "tenant", "deployment", "provider", "model", "kind", fallback.Attribute}

// isPersonal says whether a refusal is about the client whose request it was, and not
// about what was asked.
func (e *refusedError) isPersonal() bool {
	return e.refusal.Reason == refuse.RetryBudget || e.refusal.Reason == refuse.Attempts
}

// course is how far the work of a request has come.
type course struct {
	// tries is how often it was sent.
	tries int
	// counted: the client's retry budget has seen it.
	counted bool
	// targets is how many fallbacks were thought of.
	targets int
}

// lead does the work of a request: as many tries as it takes and may have. The error is a
// refusedError where nothing was passed on, or what ended an answer.
func (c *call) lead(ctx context.Context, to out.Sink) error {
	g := c.gateway
	var now course
	for {
		next, err := c.once(ctx, to, &now)
		if answered, ended := c.elsewhere(ctx, to, &now, c.trouble(&now, next, err)); answered {
			return ended
		}
		switch {
		case err != nil || next == nil:
			return err
		case next.cause == fallback.Closed:
			if c.patience <= next.after {
				return &refusedError{refusal: next.refusal}
			}
		case now.tries == c.set.Tries || c.patience <= next.after || !c.pays():
			g.counts.exhausted.Add(1)
			return &refusedError{refusal: next.refusal}
		default:
			g.counts.retried.Add(1)
		}
		c.patience -= next.after
		if !lately.Pause(ctx, next.after) {
			return context.Cause(ctx)
		}
	}
}

// once charges a request and sends it. It returns neither a further try nor an error where
// the request was answered.
func (c *call) once(ctx context.Context, to out.Sink, now *course) (*again, error) {
	g := c.gateway
	// Money that is used up comes back by nobody's waiting (S3-27).
	if g.teller.Capped(c.about) {
		return nil, &refusedError{refusal: refuse.Refusal{Reason: refuse.SpendCap, Scope: "deployment"}}
	}
	// Nobody queues for what is closed.
	if v := c.circuit.Look(g.now()); v.Action != circuit.Forward {
		return c.shut(v)
	}
	held, err := c.charge(ctx, now)
	if err != nil {
		return nil, err
	}
	// What was not sent costs nothing, and what waits holds nothing; once it was settled this
	// does nothing.
	defer held.Release()
	// The queue may have taken a while: what has opened since counts (S2-24).
	permit, v := c.circuit.Forward(g.now())
	if permit == nil {
		return c.shut(v)
	}
	now.tries++
	return c.forward(ctx, to, &sending{call: c, held: held, permit: permit, try: now.tries - 1})
}

// shut is what becomes of a request while a circuit is open: it waits somewhat longer than
// that by chance, so that not all come back in one moment, or is refused.
func (c *call) shut(v circuit.Verdict) (*again, error) {
	if v.Action != circuit.Defer {
		return nil, &refusedError{refusal: c.closed(v), cause: fallback.Closed}
	}
	after := max(v.Left, deferMin)
	after += time.Duration(c.gateway.config.Draw(int64(max(after/4, time.Second))))
	return &again{after: after, refusal: c.closed(v), cause: fallback.Closed}, nil
}

// deferMin is how long a deferred request waits at least: while a probe is under way nobody
// knows for how long.
const deferMin = 100 * time.Millisecond

// charge asks for what the request is estimated to need.
func (c *call) charge(ctx context.Context, now *course) (*charge.Charge, error) {
	g := c.gateway
	r := &c.body.request
	w := provider.Work{
		Input:     g.estimates.Tokens(c.who.Tenant, c.route.model, r.Input),
		MaxOutput: r.MaxOutput, ModelMax: c.deployment.OutputMax, Choices: r.Choices,
	}
	amounts := c.deployment.Provider.Counting.Charge(w)
	if price := c.deployment.Fallback.Price; price != nil {
		amounts[fallback.Cost] = max(1, price.Most(w.Input, w.MaxOutput, w.ModelMax, w.Choices))
	}
	held, err := c.take(ctx, &charge.Work{
		Client: c.who.Client, Class: c.who.Class, Attempt: c.attempt.Ceiling, Again: now.counted,
		Attributes: c.about.Attributes, MaxWait: c.patience, Amounts: amounts,
	})
	now.counted = now.counted || err == nil
	return held, err
}

// take charges work. What no limit fits is not limited, but for the client's retry budget.
func (c *call) take(ctx context.Context, work *charge.Work) (*charge.Charge, error) {
	g := c.gateway
	began := time.Now()
	defer func() { c.waited(began) }()
	held, decision, err := g.desk.Take(ctx, *work)
	if isUnmatched(err) && !g.unmatched.Has(time.Now(), c.kind()) {
		// A node that has just come may not have heard of the limits yet.
		if !lately.Pause(ctx, lately.UnmatchedPause) {
			return nil, context.Cause(ctx)
		}
		held, decision, err = g.desk.Take(ctx, *work)
	}
	switch {
	case isUnmatched(err):
		g.unmatched.Add(time.Now(), c.kind())
		return nil, c.unlimited(work)
	case err != nil:
		return nil, err
	case held == nil:
		g.teller.Denied(decision, c.about)
		no := refuse.Denied(decision)
		return nil, &refusedError{refusal: no, cause: fallback.DeniedIf(no.Passes())}
	default:
		return held, nil
	}
}

// pays says whether one more try is paid for, and pays.
func (c *call) pays() bool {
	return c.set.balances[c.deployment].pays(c.gateway.now(), c.set.RetryTokens)
}

// waited takes in that it has waited since then.
func (c *call) waited(since time.Time) { c.patience = max(0, c.patience-time.Since(since)) }

// isUnmatched says whether no limit fits what was asked for.
func isUnmatched(err error) bool { return session.Reason(err) == "LIMIT_NOT_FOUND" }

// kind is what requests have in common that the same limits fit, for most limits.
func (c *call) kind() string {
	return c.deployment.Name + "\x00" + c.route.model + "\x00" + c.who.Tenant + "\x00" + c.who.Class
}

// unlimited lets through what no limit fits, and says so now and then.
func (c *call) unlimited(work *charge.Work) error {
	g := c.gateway
	g.counts.unlimited.Add(1)
	if g.said.Due(time.Now()) {
		g.config.Logger.Warn("no limit fits what is asked for: it is let through",
			"client", c.who.Client, "tenant", c.who.Tenant, "deployment", c.deployment.Name, "model", c.route.model)
	}
	if work.Again {
		return nil
	}
	verdict := g.config.Authority.TriesOf(work.Client).Permit(work.Attempt)
	if verdict.Admit {
		return nil
	}
	reason := refuse.RetryBudget
	if verdict.Never {
		reason = refuse.Attempts
	}
	// What a budget asks for is configured.
	return &refusedError{refusal: refuse.Refusal{Reason: reason}}
}

// describe says what the work is, once its deployment and its route are known. Everybody reads
// it, and nobody changes it.
func (c *call) describe() {
	all := make(map[string]string, len(ownAttributes)+len(c.deployment.Attributes))
	maps.Copy(all, c.deployment.Attributes)
	put := func(name, value string) {
		if value != "" {
			all[name] = value
		}
	}
	put("client", c.who.Client)
	put("tenant", c.who.Tenant)
	put("deployment", c.deployment.Name)
	put("provider", c.deployment.Provider.Name)
	put("model", c.route.model)
	if c.route.Route != nil {
		put("kind", string(c.route.Kind))
	}
	if c.home != nil {
		put(fallback.Attribute, c.home.Name)
	}
	c.about = told.About{Attributes: all, Tenant: c.who.Tenant, Deployment: c.deployment.Name}
}
