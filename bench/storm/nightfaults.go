package storm

import (
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

const (
	// electionTime is how long it takes at most until another node leads.
	electionTime = time.Second
	// callTime is more than an acquire takes from a gateway and back.
	callTime = 100 * time.Millisecond
)

// What goes wrong in a night of 125 minutes: a quarter of it is over when the leader
// dies.
const (
	leaderDies   = 125 * time.Minute / 4
	leaderBack   = leaderDies + time.Minute
	followerCut  = 50 * time.Minute
	followerBack = 60 * time.Minute
	gatewayDies  = 75*time.Minute + 3*time.Second
)

// flight is a call that is under way.
type flight struct {
	operation *logv1.Acquire
	done      func(ok bool)
	// lost: its gateway is gone. over: it has ended.
	lost, over bool
}

// took notes a call that an op's lease is spent on.
func (p *paced) took(op *logv1.Acquire, done func(ok bool)) *flight {
	f := &flight{operation: op, done: done}
	if p.calls != nil {
		p.calls[string(op.GetLeaseId())]++
		if op.GetClass() == batchClass {
			p.flights = append(underWay(p.flights), f)
		}
	}
	return f
}

// underWay are those that are neither over nor lost.
func underWay(flights []*flight) []*flight {
	return slices.DeleteFunc(flights, func(f *flight) bool { return f.over || f.lost })
}

// killGateway ends the gateway of all the backfill's calls that are under way. Nobody
// hears what they came to, their leases are never settled, and the tasks are done again.
func (p *paced) killGateway() (held int) {
	p.flights = underWay(p.flights)
	for _, f := range slices.Clone(p.flights) {
		f.lost = true
		held++
		f.done(false)
	}
	return held
}

// nightFaults is the night with a leader that dies, a follower that is cut off, and a
// gateway that dies with leases.
func nightFaults(seed uint64, o *Outcome) {
	held, diverged := 0, -1
	p := playNight(seed, o, night{tasks: backlogTasks, reserve: 5, faults: func(p *paced) {
		p.At(nil, leaderDies, func() { p.cluster.KillLeader(electionTime) })
		p.At(nil, leaderBack, func() { p.cluster.Heal(0) })
		p.At(nil, followerCut, func() { p.cluster.Cut(2) })
		p.At(nil, followerBack, func() {
			p.cluster.Heal(2)
			diverged = p.cluster.Diverged()
		})
		p.At(nil, gatewayDies, func() { held = p.killGateway() })
	}})
	twice := 0
	for _, calls := range p.calls {
		if calls > 1 {
			twice++
		}
	}
	stalled := time.Duration(0)
	for i, came := range p.came {
		if came >= leaderDies-callTime && came < leaderDies+electionTime {
			stalled = max(stalled, p.live[i])
		}
	}
	o.within(Unique, float64(p.done), backlogTasks, backlogTasks)
	o.within(GatewayHeld, float64(held), 1, nightlyWorkers)
	o.exactly(DoneAgain, p.admitted-p.done-len(p.live), held)
	o.exactly(SpentTwice, twice, 0)
	o.exactly(ProviderNo, p.attempts-p.admitted, 0)
	o.within(InputWorst, p.worstMinute(), -open, 325_000)
	o.within(StallMax, stalled.Seconds(), 0, (electionTime + callTime).Seconds())
	o.within(LivePart, 100*ratio(p.liveDone, p.liveEnded), 100, 100)
	o.within(LiveP99, quantile(p.live, 0.99).Seconds(), 0, liveWaitMost)
	o.within(BacklogTime, p.finished.Minutes(), nightLeast, nightMost)
	o.exactly(DivergedNodes, diverged, 0)
}
