package sim

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/holder"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

// addHolders brings in those who hold slots.
func (w *World) addHolders() {
	for i := range 4 {
		c := w.newcomer(fmt.Sprint("h", i))
		w.holders = append(w.holders, holder.New(holder.Config{
			Stage: w.stage, Host: c.host, Judge: w.judge, Stats: &w.stats, Trap: w.trap, Name: c.name,
			Busy: func() bool { return w.busy }, NextID: c.nextID,
			Persist: func(op *logv1.Operation, tries int, done func(*logv1.Result)) {
				c.persist(op, tries, func(r reply) { done(r.result) })
			},
			Wait: func(op *logv1.Acquire, most time.Duration, done func(*logv1.Result)) {
				c.wait(op, most, func(r reply) { done(r.result) })
			},
		}))
	}
	w.judge.Slots(w.limit(rules.Gate))
	w.keepHangingUp()
}

// hangUp breaks the connection of a holder. The nodes hear of it sooner or later, or
// never.
func (w *World) hangUp() {
	if len(w.holders) == 0 {
		return
	}
	w.holders[w.stage.Rand.IntN(len(w.holders))].HangUp(func(session []byte, over uint64) {
		if w.trap == trap.EndedByID {
			// Whichever of its connections it is.
			over += 100
		}
		op := &logv1.Operation{Kind: &logv1.Operation_EndSession{EndSession: &logv1.EndSession{
			Session: session, Connection: over, Grace: int64(holder.Grace),
		}}}
		for range 1 + w.stage.Rand.IntN(2) {
			n := w.anyNode()
			w.stage.At(n.host, w.stage.Between(0, holder.Grace), func() { n.take(&call{op: op, from: n.host}) })
		}
	})
}

// keepHangingUp breaks connections as long as there are faults.
func (w *World) keepHangingUp() {
	w.stage.At(nil, w.stage.Between(500*time.Millisecond, 3*time.Second), func() {
		if w.faulty {
			w.hangUp()
		}
		w.keepHangingUp()
	})
}
