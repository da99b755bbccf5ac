package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
)

// recycler hoards: it takes whatever there is, gives each lease back just before
// its end, takes it again, and once in a while spends all that it holds in one
// instant (T40). The authority bounds what can come back, and so what it can
// hold.
type recycler struct {
	client *client
	held   []*holding
}

func (r *recycler) start() {
	s := r.client.world.stage
	s.At(r.client.host, s.Between(0, r.client.think), r.act)
	s.At(r.client.host, s.Between(10*time.Second, 30*time.Second), r.spree)
}

func (r *recycler) act() {
	s := r.client.world.stage
	s.At(r.client.host, s.Between(50*time.Millisecond, 200*time.Millisecond), r.act)
	if r.client.world.busy {
		r.take(s.Amount(1, 5))
	}
}

func (r *recycler) take(amount int64) {
	c := r.client
	op := &logv1.Acquire{
		LeaseId: c.nextID("t"), Client: c.name, Track: true, Charges: rules.Charges(rules.Rate, "", "requests", amount),
	}
	sent := c.clock()
	c.persist(rules.Acquire(op), 2, func(answer reply) {
		a := answer.result.GetAcquire()
		if !a.GetGranted() {
			return
		}
		c.world.stats.Granted++
		ttl := time.Duration(a.GetTtl())
		h := &holding{
			client: c, op: op, grant: judge.Grant{Until: answer.until}, end: sent + ttl - ttl/1000, spent: make([]int64, 1),
		}
		r.held = append(r.held, h)
		c.world.stage.At(c.host, max(0, h.end-c.clock())*9/10, func() { r.recycle(h) })
	})
}

// recycle gives a lease back and takes as much again.
func (r *recycler) recycle(h *holding) {
	if h.closed || h.spent[0] > 0 {
		return
	}
	h.giveBack()
	if r.client.world.busy {
		r.take(h.op.GetCharges()[0].GetAmount())
	}
}

// spree spends everything that is held.
func (r *recycler) spree() {
	s := r.client.world.stage
	s.At(r.client.host, s.Between(10*time.Second, 30*time.Second), r.spree)
	held := r.held
	r.held = nil
	for _, h := range held {
		h.spend(true)
	}
}
