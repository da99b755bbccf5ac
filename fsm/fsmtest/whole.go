package fsmtest

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// more is an operation of the whole model: a window or a session.
func (w *World) more() *logv1.Operation {
	switch w.Choose(5) {
	case 0, 1:
		return Operation(w.roll())
	case 2, 3:
		return Operation(&logv1.EndSession{
			Session: w.session(), Owner: w.owner(), Connection: uint64(w.Choose(4)),
			Grace: int64(pick(w, 0, time.Second, time.Minute)), Resumed: w.Choose(4) == 0,
		})
	}
	w.seq++
	return Operation(&logv1.Renew{
		LeaseId: w.leaseID(), Owner: w.owner(), Sequence: w.seq, Ttl: int64(time.Minute),
		Session: w.session(), Connection: uint64(w.Choose(4)),
	})
}

// roll is a window by the hour, mostly the one of now.
func (w *World) roll() *logv1.RollWindow {
	hour := int64(time.Hour)
	starts := int64(w.now) / hour * hour
	return &logv1.RollWindow{
		Limit:  pick(w, "q0", "q0", "q0", w.limit()),
		Starts: starts + pick(w, int64(0), 0, 0, hour, -hour), Ends: starts + pick(w, hour, hour, 2*hour),
	}
}

func (w *World) session() []byte {
	if !w.Tame && w.Choose(16) == 0 {
		return []byte("short")
	}
	return LeaseID(pick(w, "s0", "s1"))
}

// counted is a charge of slots or of a quota.
func (w *World) counted() *logv1.Charge {
	limit, key := pick(w, "s0", "q0"), pick(w, "k0", "k1", "k2")
	if limit == "q0" {
		return Charge(limit, key, "tokens", w.amount())
	}
	return Charge(limit, key, "slots", int64(1+w.Choose(3)))
}

// way is what nodes add to an acquire on its way, and its session.
func (w *World) way(op *logv1.Acquire) {
	if w.Choose(2) == 0 {
		op.Session, op.Connection = w.session(), uint64(w.Choose(4))
	}
	if w.Choose(4) == 0 {
		op.Held = int64(pick(w, time.Millisecond, time.Second))
	}
	if w.Choose(16) == 0 {
		revision := uint64(w.Choose(20))
		op.Revision, op.Content = &revision, uint64(w.Choose(3))
	}
	for _, c := range op.GetCharges() {
		if w.Choose(4) == 0 {
			c.Keep = pick(w, int64(1), 3, bucket.MaxTokens)
		}
	}
}

// counting is a limit of slots or a quota.
func (w *World) counting() *logv1.Limit {
	if w.Choose(2) == 0 {
		limit := Slots("s0", int64(w.Choose(5)))
		limit.Lease = int64(pick(w, time.Second, 5*time.Second, time.Hour))
		limit.Mode = pick(w, logv1.Mode_MODE_ENFORCE, logv1.Mode_MODE_ENFORCE, logv1.Mode_MODE_WARN)
		if w.Choose(2) == 0 {
			limit.Overrides = []*logv1.Override{{
				Value: "k1", Dimensions: []*logv1.Dimension{{Name: "slots", Interval: 1, Burst: int64(w.Choose(6))}},
			}}
		}
		return limit
	}
	amount := func() *logv1.Dimension {
		return &logv1.Dimension{Name: "tokens", Interval: 1, Burst: int64(pick(w, 0, 10, 30)), MaxDebt: 5, MaxOpen: 10}
	}
	limit := Keyed("q0", amount())
	limit.Kind = logv1.Kind_KIND_QUOTA
	limit.Calendar = &logv1.Calendar{Period: logv1.Calendar_PERIOD_HOUR, Timezone: "UTC"}
	limit.Warn = pick(w, nil, []int64{5_000}, []int64{5_000, 8_000})
	if w.Choose(2) == 0 {
		limit.Overrides = []*logv1.Override{{Value: "k", Prefix: true, Dimensions: []*logv1.Dimension{amount()}}}
	}
	return limit
}
