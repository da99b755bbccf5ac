package authority

import (
	"fmt"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
)

// replica is one node's state, where replicas are kept apart.
type replica struct {
	machine *fsm.Machine
	decoder entry.Decoder
	// cut: it hears of no entry. missed are those that it has not heard of.
	cut    bool
	missed [][]byte
	index  uint64
}

func (r *replica) apply(packed []byte) []*logv1.Result {
	decoded, err := r.decoder.Decode(packed, term)
	if err != nil {
		panic(fmt.Sprintf("decode entry: %v", err))
	}
	r.index++
	results, _ := r.machine.Apply(r.index, decoded)
	return results
}

// hear lets the replica have an entry, now or when it is heard of again.
func (r *replica) hear(packed []byte) []*logv1.Result {
	if r.cut {
		r.missed = append(r.missed, packed)
		return nil
	}
	return r.apply(packed)
}

// Cut takes a node that does not lead away from the others, and Heal brings it back:
// it applies what it has missed.
func (a *Authority) Cut(node int) { a.replicas[node].cut = true }

// Heal is the end of Cut.
func (a *Authority) Heal(node int) {
	r := a.replicas[node]
	for _, packed := range r.missed {
		r.apply(packed)
	}
	r.cut, r.missed = false, nil
}

// KillLeader ends the leader's process. Another node that has heard of everything leads
// after the election. The entry that is on its way commits, and nobody hears of it;
// the queue is gone; what nobody was answered is asked again, with the same lease ids.
// The node is back when it is healed.
func (a *Authority) KillLeader(election time.Duration) {
	a.Cut(a.leader)
	a.leader = slices.IndexFunc(a.replicas, func(r *replica) bool { return !r.cut })
	if a.leader < 0 {
		panic("nobody is left to lead")
	}
	a.machine = a.replicas[a.leader].machine
	a.reign++
	a.turn++
	gathered := append(a.flight, a.gathering...)
	a.flight, a.gathering, a.flying = nil, nil, false
	a.waiting = queue.New(queue.Config{})
	a.waiting.Configure(a.stage.Real(), a.terms)
	a.leaderless = true
	a.stage.At(nil, election, func() {
		a.leaderless = false
		for _, p := range gathered {
			if p.operation.GetAcquire() == nil {
				a.propose(p.operation, p.done)
			}
		}
		asks := a.asks
		a.asks = nil
		for _, ask := range asks {
			if !ask.answered {
				a.acquire(ask)
			}
		}
	})
}

// Diverged is how many nodes are in another state than the leader.
func (a *Authority) Diverged() (n int) {
	for _, r := range a.replicas {
		if r.machine.Hash() != a.machine.Hash() {
			n++
		}
	}
	return n
}
