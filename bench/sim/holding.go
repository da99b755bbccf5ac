package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

// holding is a lease in somebody's hands.
type holding struct {
	client *client
	op     *logv1.Acquire
	grant  judge.Grant
	// end is when it may no longer be spent, on the holder's clock.
	end   time.Duration
	spent []int64
	// closed: it was given back or settled, and nothing of it is spent any more.
	closed bool
}

// hold takes a grant. Its life counts from before the request was first sent,
// less a thousandth for the drift between two machines.
func (c *client) hold(op *logv1.Acquire, r reply, sent time.Duration) {
	c.world.stats.Granted++
	ttl := time.Duration(r.result.GetAcquire().GetTtl())
	h := &holding{
		client: c, op: op, grant: judge.Grant{Until: r.until}, end: sent + ttl - ttl/1000,
		spent: make([]int64, len(op.GetCharges())),
	}
	h.plan(max(0, h.end-c.clock()))
	if op.GetTrack() {
		h.planEnd(ttl)
	}
}

// plan spends it in up to three pieces, or all of it at the last moment: that is
// how spending trails debiting most.
func (h *holding) plan(left time.Duration) {
	s := h.client.world.stage
	if s.Chance(3) {
		s.At(h.client.host, left-left/500, func() { h.spend(true) })
		return
	}
	for range 1 + s.Rand.IntN(3) {
		s.At(h.client.host, s.Between(0, left), func() { h.spend(false) })
	}
}

// planEnd settles it, gives it back or forgets it, and may renew it before.
func (h *holding) planEnd(ttl time.Duration) {
	s, host := h.client.world.stage, h.client.host
	after := s.Between(ttl/10, ttl+ttl/4)
	if s.Chance(4) {
		s.At(host, s.Between(ttl/2, ttl+ttl/10), h.renew)
		after = s.Between(ttl, 3*ttl)
	}
	switch s.Rand.IntN(8) {
	case 0, 1:
		// Forgotten: it ends unreported and is charged in full.
	case 2, 3:
		s.At(host, after, h.giveBack)
	default:
		s.At(host, after, h.settle)
	}
}

func (h *holding) spend(everything bool) {
	c := h.client
	if h.closed || c.clock() >= h.end {
		return
	}
	for i, charge := range h.op.GetCharges() {
		n := charge.GetAmount() - h.spent[i]
		if !everything {
			n = c.world.stage.Rand.Int64N(n + 1)
		}
		if n > 0 {
			h.spent[i] += n
			c.world.judge.SpendLease(c.world.stage.Real(), c.name, charge, n, h.grant)
			if c.world.trap == trap.DoubleSpend {
				c.world.judge.SpendLease(c.world.stage.Real(), c.name, charge, n, h.grant)
			}
		}
	}
}

func (h *holding) giveBack() {
	for _, n := range h.spent {
		if n > 0 || h.closed {
			h.settle()
			return
		}
	}
	h.closed = true
	h.client.release(h.op.GetLeaseId(), 6)
}

// settle reports what was used; of some limits and classes sometimes more than was
// granted, which is debt. A class whose guarantee is watched stays inside.
func (h *holding) settle() {
	if h.closed {
		return
	}
	h.closed = true
	s := h.client.world.stage
	op := &logv1.Settle{LeaseId: h.op.GetLeaseId()}
	for i, charge := range h.op.GetCharges() {
		used := h.spent[i]
		loose := charge.GetLimit() == rules.Loose || charge.GetLimit() == rules.Mixed && h.op.GetClass() != "live"
		if loose && s.Chance(3) {
			used = charge.GetAmount() + s.Amount(1, 5)
		}
		op.Used = append(op.Used, &logv1.Usage{Dimension: charge.GetDimension(), Used: used})
	}
	h.client.world.stats.Settled++
	h.client.persist(&logv1.Operation{Kind: &logv1.Operation_Settle{Settle: op}}, 8, func(reply) {})
}

func (h *holding) renew() {
	if h.closed {
		return
	}
	h.client.world.stats.Renewed++
	op := &logv1.Renew{LeaseId: h.op.GetLeaseId(), Ttl: int64(5 * time.Second), Sequence: 1}
	h.client.persist(&logv1.Operation{Kind: &logv1.Operation_Renew{Renew: op}}, 4, func(r reply) {
		if h.client.world.trap == trap.Prolonged && r.result.GetLease() != nil {
			h.end = h.client.clock() + time.Duration(op.GetTtl())
			h.plan(time.Duration(op.GetTtl()))
		}
	})
}
