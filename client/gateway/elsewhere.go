package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/internal/out"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/spent"
)

// errFallback is an error that a fallback has answered, which is about no limit.
func errFallback(c *call) error {
	return &refusedError{refusal: c.unusable("a fallback has answered an error")}
}

// trouble is what stands between a call and its own deployment, after a try.
func (c *call) trouble(now *course, next *again, err error) fallback.Trouble {
	t := fallback.Trouble{Refusals: now.tries, Allowed: c.patience}
	var no *refusedError
	if next != nil {
		t.Cause, t.Wait, t.Last = next.cause, next.after, now.tries == c.set.Tries
	} else if errors.As(err, &no) {
		t.Cause, t.Wait = no.cause, no.refusal.Wait
		t.Last = no.cause == fallback.Closed || no.refusal.Reason == refuse.WaitExpired
	}
	return t
}

// elsewhere has another deployment answer, each at most once, and without a place in a queue.
// Where none does it is false, and all is as it was. What is a shadow's goes nowhere.
func (c *call) elsewhere(ctx context.Context, to out.Sink, now *course, t fallback.Trouble) (bool, error) {
	own := &c.deployment.Fallback
	for home := *c; c.shadow == nil && c.class.Manner.Considers(t) && now.targets < len(own.To); *c = home {
		now.targets++
		if !c.aim(own.To[now.targets-1], t) {
			continue
		}
		there := course{counted: now.counted}
		next, err := c.once(ctx, to, &there)
		now.counted = there.counted
		var no *refusedError
		c.aside.Ended(time.Now(), next == nil && err == nil)
		// What was sent and not answered may be worked on: twice would be paid twice.
		if next == nil && (!errors.As(err, &no) || no.passes && no.cause == fallback.None) {
			return true, err
		}
	}
	return false, nil
}

// aim turns a call to another deployment, and sets aside what it may cost there.
func (c *call) aim(target fallback.Target, t fallback.Trouble) bool {
	g, to, r := c.gateway, c.set.named(target.Deployment), &c.body.request
	if !g.book.IsSooner(t, &c.deployment.Fallback, &to.Fallback) {
		return false
	}
	match, ok := to.Provider.Route(c.request.URL.Path)
	aimed, err := target.Aim(match, c.route.model, c.body.bytes)
	if err != nil || !ok {
		return false
	}
	c.home, c.deployment, c.route, c.body.bytes = c.deployment, to, route{aimed.Match, aimed.Model}, aimed.Body
	c.aside, ok = g.book.Reserve(time.Now(), c.set.Fallback, to.Fallback.Price.Most(
		g.estimates.Tokens(c.who.Tenant, c.route.model, r.Input), r.MaxOutput, to.OutputMax, r.Choices))
	c.circuit, c.patience = g.board.Call(c.who.Tenant, to.Name, circuit.Shed), 0
	c.describe()
	return ok
}

// money adds what a call has cost to what it has used, and enters it in the book.
func (c *call) money(used map[string]int64, u spent.Usage) map[string]int64 {
	if price := c.deployment.Fallback.Price; price != nil {
		used[fallback.Cost] = price.Of(u.Input, u.Output)
		c.gateway.book.Spent(time.Now(), c.aside, used[fallback.Cost])
	}
	return used
}
