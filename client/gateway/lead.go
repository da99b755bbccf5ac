package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// refusedError is why nothing was passed on: the gateway's own no, or a provider's that
// clients are told in the gateway's words.
type refusedError struct {
	refusal refuse.Refusal
	// passes: another one's attempt may fare better.
	passes bool
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
	// deferred: it was not sent, because the circuit is open.
	deferred bool
}

// ownAttributes are those that the gateway says of each request.
var ownAttributes = []string{"client", "tenant", "deployment", "provider", "model", "kind"}

// lead does the work of a request: as many tries as it takes and may have. The error is a
// refusedError where nothing was passed on, or what ended an answer.
func (c *call) lead(ctx context.Context, out sink) error {
	g := c.gateway
	for try := 0; ; {
		next, err := c.once(ctx, out, try)
		if err != nil || next == nil {
			return err
		}
		if !next.deferred {
			if try++; try == g.config.Tries || !g.balances[c.deployment].pays(g.now()) {
				g.counts.exhausted.Add(1)
				return &refusedError{refusal: next.refusal, passes: true}
			}
		}
		if time.Until(c.until) < next.after {
			if !next.deferred {
				g.counts.exhausted.Add(1)
			}
			return &refusedError{refusal: next.refusal}
		}
		if !pause(ctx, next.after) {
			return context.Cause(ctx)
		}
		if !next.deferred {
			g.counts.retried.Add(1)
		}
	}
}

// once charges a request and sends it. It returns neither a further try nor an error where
// the request was answered.
func (c *call) once(ctx context.Context, out sink, try int) (*again, error) {
	// Money that is used up comes back by nobody's waiting (S3-27).
	if c.gateway.teller.Capped(c.about()) {
		return nil, &refusedError{refusal: refuse.Refusal{Reason: refuse.SpendCap, Scope: "deployment"}}
	}
	held, err := c.charge(ctx, try)
	if err != nil {
		return nil, err
	}
	// What was not sent costs nothing, and what waits holds nothing; once it was settled this
	// does nothing.
	defer held.Release()
	// The queue may have taken a while: what has opened since counts (S2-24).
	permit, v := c.circuit.Forward(c.gateway.now())
	switch {
	case permit != nil:
		return c.forward(ctx, out, &sending{call: c, held: held, permit: permit, try: try})
	case v.Action == circuit.Defer:
		return &again{after: max(v.Left, deferMin), refusal: c.closed(v), deferred: true}, nil
	default:
		return nil, &refusedError{refusal: c.closed(v)}
	}
}

// deferMin is how long a deferred request waits at least: while a probe is under way nobody
// knows for how long.
const deferMin = 100 * time.Millisecond

// charge asks for what the request is estimated to need.
func (c *call) charge(ctx context.Context, try int) (*charge.Charge, error) {
	g := c.gateway
	r := &c.body.request
	work := charge.Work{
		Client: c.who.Client, Class: c.who.Class, Attempt: c.attempt.Ceiling, Again: try > 0,
		Attributes: c.attributes(), MaxWait: max(0, time.Until(c.until)),
		Amounts: c.deployment.Provider.Counting.Charge(provider.Work{
			Input:     g.estimates.Tokens(c.who.Tenant, c.route.model, r.Input),
			MaxOutput: r.MaxOutput, ModelMax: c.deployment.OutputMax, Choices: r.Choices,
		}),
	}
	held, decision, err := g.desk.Take(ctx, work)
	switch {
	case err != nil:
		return nil, err
	case held == nil:
		g.teller.Denied(decision, c.about())
		return nil, &refusedError{refusal: refuse.Denied(decision)}
	default:
		return held, nil
	}
}

// attributes say what the work is.
func (c *call) attributes() map[string]string {
	all := make(map[string]string, len(ownAttributes)+len(c.deployment.Attributes))
	for name, value := range c.deployment.Attributes {
		all[name] = value
	}
	for name, value := range map[string]string{
		"client": c.who.Client, "tenant": c.who.Tenant, "deployment": c.deployment.Name,
		"provider": c.deployment.Provider.Name, "model": c.route.model, "kind": string(c.route.Kind),
	} {
		if value != "" {
			all[name] = value
		}
	}
	return all
}
