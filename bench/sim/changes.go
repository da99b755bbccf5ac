package sim

import (
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/rules"
)

// change gives a limit other numbers: what is spent of it is not judged, what is
// debited is. One that is seldom asked for changes several times in a row.
func (w *World) change() {
	if w.stage.Chance(2) {
		w.changeTo(rules.Loose, w.stage.Amount(1, 20), w.stage.Amount(5, 30))
		return
	}
	w.changeInARow()
}

func (w *World) changeInARow() {
	for i := range time.Duration(1 + w.stage.Rand.IntN(4)) {
		w.stage.At(nil, i*w.stage.Between(100*time.Millisecond, 600*time.Millisecond), func() {
			w.changeTo(rules.Rare, w.stage.Amount(1, 4), w.stage.Amount(2, 20))
		})
	}
}

// keepChanging changes the limit that is seldom asked for, now and then, as long as
// there are faults.
func (w *World) keepChanging() {
	w.stage.At(nil, w.stage.Between(2*time.Second, 8*time.Second), func() {
		if w.faulty {
			w.changeInARow()
		}
		w.keepChanging()
	})
}

func (w *World) changeTo(name string, amount, burst int64) {
	limit := proto.CloneOf(w.limit(name))
	d := limit.GetDimensions()[0]
	d.Amount, d.Burst = amount, burst
	w.stage.Trace("limit %s: %d a second, burst %d", name, amount, burst)
	op := &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
		Limits: []*logv1.Limit{limit},
	}}}
	w.clients[0].persist(op, 5, func(reply) {})
}
