package escrow

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/state"
)

// leastBurst is how many tokens of effective burst a class has to have for each member
// before nodes hold any of them: below it there is too little to spread.
const leastBurst = 100

// gives says that a limit gives escrow of anything.
func gives(limit *logv1.Limit) bool {
	return limit.GetKind() == logv1.Kind_KIND_RATE && limit.GetMode() == logv1.Mode_MODE_ENFORCE &&
		!limit.GetUnlimited() && !limit.GetExact() && limit.GetEscrow() > 0
}

// largeEnough says that a class of a dimension has enough to give, and that there is a
// rate to bound it by.
func largeEnough(shape *bucket.Shape, class int, members int64) bool {
	return !shape.IsZero() && shape.EffectiveBurst(class) >= leastBurst*members
}

// members is how many nodes there are to share.
func members(s *state.State) int64 { return max(1, int64(len(s.Nodes()))) }

// Life is how long what nodes hold of a dimension can live: its part of the slack (G2),
// 0 where they hold nothing.
func Life(s *state.State, limit *logv1.Limit, d *lineage.Dimension) time.Duration {
	for class := range d.Shape.Classes() {
		if gives(limit) && largeEnough(d.Shape, class, members(s)) {
			return time.Duration(limit.GetEscrow())
		}
	}
	return 0
}
