package sim

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/holder"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// gateway asks for what a provider gives, and tells what it hears from it.
type gateway struct{ client *client }

// told is a key that providers speak of.
type told struct{ limit, key string }

func (w *World) told() []told {
	all := []told{{rules.Soft, "k0"}, {rules.Soft, "k1"}, {rules.Adapt, ""}}
	if len(w.holders) > 0 {
		all = append(all, told{rules.Gate, ""})
	}
	if w.pool != nil {
		all = append(all, told{rules.Pool, w.pool.key})
	}
	return all
}

func (g *gateway) start() {
	s := g.client.world.stage
	s.At(g.client.host, startFor/2, g.act)
	s.At(g.client.host, startFor, g.tell)
}

func (g *gateway) act() {
	c, s := g.client, g.client.world.stage
	s.At(c.host, s.Between(20*time.Millisecond, 400*time.Millisecond), g.act)
	if !c.world.busy {
		return
	}
	if s.Chance(2) {
		c.tracked(rules.Adapt, rules.Charges(rules.Adapt, "", "requests", s.Amount(1, 5)))
		return
	}
	c.tracked(rules.Soft, rules.Charges(rules.Soft, fmt.Sprint("k", s.Rand.IntN(2)), "requests", s.Amount(1, 5)))
}

// tell reports what the provider said. It is harmless twice.
func (g *gateway) tell() {
	c, s := g.client, g.client.world.stage
	s.At(c.host, s.Between(300*time.Millisecond, 4*time.Second), g.tell)
	if !c.world.busy {
		return
	}
	op := &logv1.Feedback{Client: c.name}
	for range 1 + s.Rand.IntN(2) {
		op.Signals = append(op.Signals, g.signal())
	}
	c.world.stats.Signals += len(op.GetSignals())
	c.call(&logv1.Operation{Kind: &logv1.Operation_Feedback{Feedback: op}}, time.Second, func(r reply) {
		if refusal := r.result.GetRefusal(); refusal != nil {
			c.world.judge.Complain("model", "%v is refused: %v", op, refusal)
		}
	})
}

func (g *gateway) signal() *logv1.Signal {
	w, s := g.client.world, g.client.world.stage
	all := w.told()
	about := all[s.Rand.IntN(len(all))]
	dimension := "requests"
	if about.limit == rules.Gate {
		dimension = "slots"
	}
	signal := rules.Signal(s, about.limit, about.key, dimension)
	if signal.GetKind() == logv1.Signal_KIND_SPEND_CAP {
		w.stage.At(nil, s.Between(time.Second, 4*time.Second), func() { w.clear(about) })
	}
	return signal
}

// clear is a person who opens a key again.
func (w *World) clear(one told) {
	op := &logv1.Operation{Kind: &logv1.Operation_Adjust{Adjust: &logv1.Adjust{
		Limit: one.limit, Key: one.key, Change: &logv1.Adjust_Clear{Clear: true}, Reason: "paid",
	}}}
	w.clients[0].persist(op, holder.Forever, func(r reply) {
		if r.result.GetAdjust() == nil {
			w.judge.Complain("model", "%v is answered %v", op, r.result)
		}
	})
}

// clearAll opens every key again.
func (w *World) clearAll() {
	for _, one := range w.told() {
		w.clear(one)
	}
}

// wholeAgain checks that in the end no key is closed or slowed down.
func (w *World) wholeAgain() {
	for _, one := range w.told() {
		r := w.witness.Replica
		in, err := r.Inspect(r.Now(), one.limit, one.key)
		if err != nil {
			w.judge.Complain("model", "%v", err)
			return
		}
		if c := in.Control; c != nil && (c.Blocked || c.Pace.WholeAt() > r.Now()+bucket.Instant(time.Second)) {
			w.judge.Complain("pause", "%v is still closed: %+v", one, c)
		}
	}
}
