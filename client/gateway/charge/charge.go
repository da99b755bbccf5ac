package charge

import (
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
)

// Charge is what a call was charged. End it with Settle or Release, whichever comes first
// counts: `defer c.Release()` gives back what was not settled, whatever happened. It is
// safe for concurrent use. Nil is a charge of nothing.
type Charge struct {
	desk     *Desk
	ended    atomic.Bool
	decision client.Decision

	// paid are the permits, in room where there is enough of it.
	paid []paid
	room [6]paid
	// taken is when they were, and life for how long what is left of them can come back.
	taken, life time.Duration

	// lease is what was asked for instead, nil where nothing was.
	lease *lease
}

// paid is one permit.
type paid struct {
	tap    *tap
	permit client.Permit
	amount int64
}

// take takes everything that a plan charges, or nothing.
func (c *Charge) take(now time.Duration, p *plan, w *Work) bool {
	c.paid, c.taken, c.life = c.room[:0], now, p.life
	c.decision = client.Decision{Granted: true, Source: client.Escrow}
	for _, t := range p.parts {
		n := w.amount(t.dimension)
		permit, ok := t.take(now, n)
		if !ok {
			c.giveBack()
			return false
		}
		if permit.Local() {
			c.decision.Source = client.Local
		}
		c.paid = append(c.paid, paid{t, permit, n})
	}
	return true
}

// giveBack gives back what was taken so far.
func (c *Charge) giveBack() {
	for i := range c.paid {
		c.paid[i].tap.settle(c.paid[i].permit, 0)
	}
}

// Settle says what the call has used, by dimension, each 0 to 2^53; of one that is not
// named it is what was charged. It ends the charge and gives its slots back. What asks the
// authority does so later: nothing is waited for.
func (c *Charge) Settle(used map[string]int64) {
	if c == nil || c.ended.Swap(true) {
		return
	}
	if c.lease != nil {
		c.desk.settle(c.lease, used)
		return
	}
	late := c.desk.clock.Now()-c.taken >= c.life
	for i := range c.paid {
		one := &c.paid[i]
		n, named := used[one.tap.dimension]
		if !named {
			n = one.amount
		}
		if late && n < one.amount {
			c.desk.counts.late.Add(uint64(one.amount - max(0, n)))
		}
		one.tap.settle(one.permit, n)
	}
}

// throttleMax is for how long a provider is believed here. What is held has ended by then.
const throttleMax = time.Hour

// Throttled says that a provider has refused the call, and asks to wait. For so long calls
// that are charged any of the same limits ask the authority, instead of spending what was
// held before it was told of that. It may be called before or after the end.
func (c *Charge) Throttled(wait time.Duration) {
	if c == nil || wait <= 0 {
		return
	}
	until := c.desk.clock.Now() + min(wait, throttleMax)
	for i := range c.paid {
		c.desk.taps.rest(c.paid[i].tap.bucket, until)
	}
	if c.lease == nil {
		return
	}
	for _, one := range c.lease.Charges {
		c.desk.taps.rest(bucket{one.Limit, one.Key, one.Dimension}, until)
	}
}

// Release says that nothing was sent: everything goes back. It ends the charge.
func (c *Charge) Release() {
	if c == nil || c.ended.Swap(true) {
		return
	}
	if c.lease != nil {
		c.desk.release(c.lease)
		return
	}
	c.giveBack()
}
