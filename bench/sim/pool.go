package sim

import (
	"math"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/escrow"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/replica"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// pool is the limit of which nodes hold some, with its key.
type pool struct {
	limit *logv1.Limit
	key   string
	// spenders ask for it.
	spenders []*client
	// changes: it is given other numbers on the way. scarce: more is asked for than there is.
	changes, scarce bool
}

// addPool brings it in, in every second world.
func (w *World) addPool(seed uint64) {
	if w.trap != "" || seed%2 == 0 {
		return
	}
	p := &pool{key: []string{"", "hot"}[w.stage.Rand.IntN(2)], changes: w.stage.Chance(2), scarce: w.stage.Chance(4)}
	p.limit = rules.NewPool(p.key != "")
	w.pool, w.limits = p, append(w.limits, p.limit)
	for _, name := range []string{"s0", "s1"} {
		p.spenders = append(p.spenders, w.newcomer(name))
	}
	w.judge.Escrow(p.limit)
	if !p.changes {
		w.judge.Watch(p.limit, p.key)
	}
}

// newGrants is what a process grants by itself.
func (n *node) newGrants() *escrow.Desk {
	w := n.world
	if w.pool == nil {
		return nil
	}
	return escrow.New(escrow.Config{
		Stage: w.stage, Host: n.host, Judge: w.judge, Limit: w.pool.limit,
		Process: judge.Process{Node: n.host.Name, Boot: uint64(n.id*1000 + n.life), Life: n.life},
		Now:     n.clock.Estimate, Replica: func() *replica.Replica { return n.replica },
		Propose: n.own,
		Wanted:  n.room.Wanted,
		Answer:  func(it *door.Item, r *logv1.Result) { n.door.Answer(it, r, nil) },
	})
}

// own proposes an operation of the node's own, and once in a while again much later.
func (n *node) own(op *logv1.Operation, done func(*logv1.Result, error)) {
	c := &call{op: op, from: n.host, once: true, answer: func(r reply) {
		done(r.result, r.fate())
		if r.result != nil && n.world.stage.Chance(20) {
			again := &call{op: op, from: n.host}
			n.world.stage.At(n.host, n.world.stage.Between(0, 3*time.Second), func() { n.route(again) })
		}
	}}
	if n.granting {
		n.before = append(n.before, c)
		return
	}
	n.route(c)
}

// fate is a reply without a result as an error.
func (r reply) fate() error {
	switch {
	case r.result != nil:
		return nil
	case r.unsure:
		return outcome.ErrUnknown
	}
	return outcome.ErrNoLeader
}

// granted answers a call from what the node holds. Else it is what goes on, and before it
// what the node gives back.
func (n *node) granted(c *call) []*call {
	if n.grants == nil || c.hops > 0 || c.answer == nil || c.op.GetAcquire() == nil {
		return []*call{c}
	}
	n.granting = true
	answer, propose, admitted := n.grants.Admit(c.op, c.maxWait > 0)
	n.granting = false
	calls := n.before
	n.before = nil
	if answer != nil {
		n.world.stats.Escrowed++
		if n.world.members != nil && n.world.members.Learns(n.id) {
			n.world.stats.Learners++
		}
		n.world.stage.Trace("%s grants %v by itself", n.host.Name, c.op)
		n.reply(c, reply{result: answer, until: math.MaxInt64})
		return calls
	}
	n.world.judge.Sent(c.op.GetAcquire(), ops(calls))
	life, on := n.life, *c
	on.op, on.once = propose, true
	on.answer = func(r reply) {
		if n.life == life && n.host.Runs() {
			admitted.Finished(r.result, r.fate())
		}
		c.answer(r)
	}
	n.world.stats.Vacated += len(calls)
	return append(calls, &on)
}

func ops(calls []*call) (list []*logv1.Operation) {
	for _, c := range calls {
		list = append(list, c.op)
	}
	return list
}

// spend has a client ask for some of the pool, now and then for much.
func (p *pool) spend(c *client) {
	s := c.world.stage
	s.At(c.host, s.Between(5*time.Millisecond, 200*time.Millisecond), func() { p.spend(c) })
	if !c.world.busy {
		return
	}
	class, want := escrow.Wish(s, p.key, p.scarce)
	if s.Chance(4) {
		c.tracked(rules.Pool, want)
		return
	}
	c.untracked(class, want)
}

// start begins to spend, and to change the limit.
func (p *pool) start() {
	for _, c := range p.spenders {
		c.world.stage.At(c.host, startFor/2, func() { p.spend(c) })
	}
	if p.changes {
		p.change(p.spenders[0].world)
	}
}

func (p *pool) change(w *World) {
	w.stage.At(nil, w.stage.Between(time.Second, 6*time.Second), func() {
		if w.faulty {
			w.changeTo(rules.Pool, w.stage.Amount(50, 400), w.stage.Amount(50, 1200))
		}
		p.change(w)
	})
}
