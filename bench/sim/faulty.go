package sim

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/replica"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// What is in this file does what the authority does, where no trap is seeded.

// estimate is what a leader stamps with.
func (n *node) estimate() bucket.Instant {
	if n.world.trap == trap.WallClock {
		return n.replica.Now() + bucket.Instant(max(0, n.host.Wall()-n.lastWall))
	}
	return n.clock.Estimate()
}

// anchor tells the clock what was applied.
func (n *node) anchor(stamp bucket.Instant) {
	now, kind := n.replica.Now(), n.world.trap
	if kind == trap.OldStamp || kind == trap.SnapshotWithoutTime && stamp == 0 {
		now = stamp
	}
	if kind == trap.LargerEstimate || kind == trap.LargerEstimateDrift {
		now = max(now, n.clock.Estimate())
	}
	n.clock.SetApplied(now)
	if n.serving == 0 {
		n.world.judge.Anchored(n.host.Name, n.clock.Estimate(), n.replica.Now())
	}
	n.anchored = n.world.stage.Real()
	if kind == trap.PulledBack && n.serving != 0 {
		n.clock.Lead()
	}
}

// logged is what goes into the log for an operation.
func (n *node) logged(op *logv1.Operation) *logv1.Operation {
	acquire := op.GetAcquire()
	if n.world.trap != trap.LeaseInMemory || !acquire.GetTrack() {
		return op
	}
	return &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
		LeaseId: acquire.GetLeaseId(), Client: acquire.GetClient(), Class: acquire.GetClass(), Charges: acquire.GetCharges(),
	}}}
}

// remember is what is answered for a result of the log.
func (n *node) remember(c *call, r *logv1.Result) *logv1.Result {
	if n.world.trap == trap.LeaseInMemory && c.op.GetAcquire().GetTrack() && r.GetAcquire().GetGranted() {
		n.memory[string(c.op.GetAcquire().GetLeaseId())] = r.GetAcquire()
	}
	return r
}

// intercept answers a call without the log, where a trap does.
func (n *node) intercept(c *call) bool {
	switch {
	case n.world.trap == trap.LeaseInMemory && n.serving != 0:
		return n.fromMemory(c)
	case n.world.trap == trap.OwnView && c.hops == 0 && c.answer != nil:
		return n.fromView(c)
	}
	return false
}

func (n *node) respond(c *call, r *logv1.Result, until int64) {
	n.world.judge.Answered(c.op, r)
	n.reply(c, reply{result: r, until: until})
}

// fromMemory answers what concerns a tracked lease (T22).
func (n *node) fromMemory(c *call) bool {
	answer, until := n.replica.Recall(n.memory, c.op)
	if answer != nil {
		n.respond(c, answer, until)
	}
	return answer != nil
}

// fromView answers releases and renewals by what this node has applied, and
// proposes them afterwards (T28).
func (n *node) fromView(c *call) bool {
	id, answer := c.op.GetRelease().GetLeaseId(), replica.LeaseAnswer(logv1.LeaseState_LEASE_STATE_RELEASED, 0)
	if renew := c.op.GetRenew(); renew != nil {
		id, answer = renew.GetLeaseId(), replica.LeaseAnswer(logv1.LeaseState_LEASE_STATE_OPEN, renew.GetTtl())
	}
	if until, ok := n.replica.View[string(id)]; id == nil || !ok || n.clock.Estimate() >= until {
		return false
	}
	n.respond(c, answer, 0)
	n.take(&call{op: c.op, from: c.from})
	return true
}
