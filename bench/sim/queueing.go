package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/waiting"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// openMost bounds what a node lets in, flightMost how long it waits for the fate of
// what it proposed.
const (
	openMost   = 10_000
	flightMost = time.Minute
)

// admitted is a call inside a node that leads: the door's item and its owner.
type admitted struct {
	door.Item
	*call
	node *node
	life int
}

// Answer implements door.Owner.
func (a *admitted) Answer(result *logv1.Result, err error) {
	n := a.node
	if n.life != a.life {
		return
	}
	n.world.judge.Left(a.op)
	if err != nil {
		n.reply(a.call, reply{unsure: outcome.MayHaveHappened(err)})
		return
	}
	r := n.remember(a.call, result)
	n.world.judge.Answered(a.op, r)
	n.reply(a.call, reply{result: r, until: int64(n.replica.Now()) + r.GetAcquire().GetTtl()})
}

// newRoom makes the real door and the real waiting room of a process.
func (n *node) newRoom() {
	n.door = door.New(openMost, openMost)
	n.inside = make(map[*call]*admitted)
	n.sent, n.came = make(map[*call]*forwarded), make(map[*call]bool)
	n.room = waiting.New(waiting.Config{
		Door: n.door,
		View: func(read func(*fsm.Machine, bucket.Instant)) {
			read(n.replica.Machine, max(n.clock.Estimate(), n.replica.Now()))
		},
		Propose: func(items ...*door.Item) bool {
			if n.serving == 0 {
				return false
			}
			n.queue = append(n.queue, items...)
			n.pump()
			return true
		},
		Reroute:    func(it *door.Item) { n.door.Answer(it, nil, outcome.ErrNotLeader) },
		Leaderless: func() error { return outcome.ErrNoLeader },
		Denied:     func(r *logv1.AcquireResult) { n.grants.Denied(r) },
		Elapsed:    n.host.Boot,
		FlightMax:  flightMost,
		Bounds:     queue.Config{Max: openMost},
	})
	n.revision = 0
}

// again says that a call that may wait has come before: on a stream, which its
// caller can leave, nothing comes twice.
func (n *node) again(c *call) bool {
	if c.maxWait == 0 {
		return false
	}
	before := n.came[c]
	n.came[c] = true
	return before
}

// admit lets a call into a node that leads.
func (n *node) admit(c *call) {
	a := &admitted{call: c, node: n, life: n.life}
	a.Operation, a.Owner, a.MaxWait, a.Relayed = n.logged(c.op), a, c.maxWait, true
	var err error
	if a.Size, err = batch.Size(a.Operation); err == nil {
		err = n.door.Admit(&a.Item)
	}
	if err != nil {
		n.reply(c, reply{})
		return
	}
	n.world.judge.Arrived(n.arrival(c), c.op)
	if c.maxWait > 0 {
		n.inside[c] = a
	}
	if n.room.Take(&a.Item) {
		n.serve()
		return
	}
	n.queue = append(n.queue, &a.Item)
	n.pump()
}

// leave says that the caller of c has gone.
func (n *node) leave(c *call) {
	if on := n.sent[c]; on != nil {
		delete(n.sent, c)
		n.world.network.Send(n.host, on.to.host, func() { on.to.leave(on.as) })
		return
	}
	if a := n.inside[c]; a != nil && a.life == n.life {
		delete(n.inside, c)
		n.world.stage.Trace("the caller of %s leaves %s", c.op.GetAcquire().GetLeaseId(), n.host.Name)
		n.world.judge.Gone(n.world.stage.Real(), c.op, n.serving)
		n.door.Cancel(&a.Item)
		n.serve()
	}
}

// forwarded is where a call went on to.
type forwarded struct {
	to *node
	as *call
}

// serve does what is due in the waiting room, now and when it is due again.
func (n *node) serve() {
	if n.serving == 0 {
		return
	}
	next := n.room.Step()
	n.turn++
	if next >= time.Hour {
		return
	}
	turn := n.turn
	n.world.stage.At(n.host, next, func() {
		if n.turn == turn {
			n.serve()
		}
	})
}

// seen tells the waiting room what was applied.
func (n *node) seen(results []*logv1.Result) {
	if revision := n.replica.Revision(); revision != n.revision {
		n.revision = revision
		limits, _ := n.replica.Limits("")
		n.room.Configure(limits)
	}
	n.room.Applied(results, n.replica.Effects)
}

// route hands calls to the leader, in their order.
func (n *node) route(calls ...*call) {
	leader := n.member.LeaderID()
	if leader >= 0 && leader != n.id && n.serving == 0 && len(calls) > 0 && calls[0].hops < 2 {
		n.forward(n.world.nodes[leader], calls)
		return
	}
	for _, c := range calls {
		if n.serving != 0 {
			n.admit(c)
		} else {
			n.reply(c, reply{noQuorum: n.host.Boot()-n.led > electionMost})
		}
	}
}

// forward sends calls on in one message.
func (n *node) forward(to *node, calls []*call) {
	on := make([]*call, len(calls))
	for i, c := range calls {
		next := *c
		next.hops++
		on[i] = &next
		if c.maxWait > 0 {
			n.sent[c] = &forwarded{to, &next}
		}
	}
	arrived := false
	n.world.network.Send(n.host, to.host, func() {
		if !arrived || !on[0].once {
			arrived = true
			to.take(on...)
		}
	})
}
