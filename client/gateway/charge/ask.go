package charge

import (
	"context"
	"errors"
	"time"

	"github.com/quorlease/quorlease/client"
)

// question is how the authority is asked.
type question struct {
	// sum is that of the work, and old the plan that there is, nil for none.
	sum uint64
	old *plan
	// learn: what it charges is to be remembered.
	learn bool
}

// ask asks the authority for everything at once, with a place in its queue. It counts the
// call, and decides by its client's retry budget.
func (d *Desk) ask(ctx context.Context, w *Work, q question) (*Charge, *client.Decision, error) {
	d.counts.asked.Add(1)
	attempt := w.Attempt
	if w.Again {
		// It is one more request, and no retry of the client's.
		attempt = 0
	}
	decision, err := d.config.Authority.Acquire(ctx, client.Request{
		Client: w.Client, Class: w.Class, Attempt: attempt, Track: true, MaxWait: w.MaxWait,
		Attributes: w.Attributes, Amounts: w.Amounts,
	})
	if err != nil {
		if q.old != nil && isFinal(ctx, err) {
			d.plans.forget(q.sum, q.old)
		}
		return nil, nil, err
	}
	// It may have waited.
	now := d.clock.Now()
	if decision.Source != client.Local {
		d.hear(now, w, q, decision)
	}
	if !decision.Granted {
		return nil, decision, nil
	}
	if d.closed.Load() {
		// There is nobody left who would do it later.
		_, _ = d.config.Authority.Release(ctx, decision.Lease)
		return nil, nil, client.ErrClosed
	}
	if decision.Source == client.Local {
		d.counts.local.Add(1)
	}
	c := &Charge{desk: d, decision: *decision}
	c.lease = d.hold(now, decision.Lease)
	return c, &c.decision, nil
}

// isFinal says whether an error is an answer: of work that fits no limit any more, say.
func isFinal(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, client.ErrClosed) && !errors.Is(err, client.ErrUnanswered)
}

// hear keeps what the authority's answer says for other calls.
func (d *Desk) hear(now time.Duration, w *Work, q question, decision *client.Decision) {
	if !decision.Granted {
		if len(decision.Denials) > 0 && decision.Denials[0].Reason == reasonBudget {
			d.overs.add(w.Client, now+min(decision.Denials[0].RetryAfter, d.config.PlanLife))
		}
		return
	}
	d.overs.drop(w.Client)
	if q.learn {
		d.counts.learned.Add(1)
		d.plans.keep(q.sum, d.planOf(now, w, &decision.Lease))
	}
}
