package sim

import (
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// change gives the loose limit other numbers: what is spent of it is not judged,
// what is debited is.
func (w *World) change() {
	limit := proto.CloneOf(w.limit(looseLimit))
	d := limit.GetDimensions()[0]
	d.Amount, d.Burst = w.stage.Amount(1, 20), w.stage.Amount(5, 30)
	w.stage.Trace("limit %s: %d a second, burst %d", limit.GetName(), d.GetAmount(), d.GetBurst())
	op := &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
		Limits: []*logv1.Limit{limit},
	}}}
	w.clients[0].persist(op, 5, func(reply) {})
}
