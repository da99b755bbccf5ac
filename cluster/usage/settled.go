package usage

import (
	"math/bits"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/plan"
)

// settledMost is how many dimensions of limits an hour keeps the estimates of (G10).
const settledMost = 100

// Answered counts what an operation did to a lease that it has ended. Of others it counts
// nothing.
func (b *Book) Answered(op *logv1.Operation, result *logv1.LeaseResult) {
	if settle := op.GetSettle(); settle != nil {
		b.Settled(settle, result)
	} else if op.GetRelease() != nil {
		b.Ended(result)
	}
}

// Settled counts how far the estimates of a lease were off, as it was settled, and what
// that gave back or took on top. A charge of which nothing was said is none that was
// measured, and a repeated answer was counted when it was first given. It waits for
// nothing but others who count.
func (b *Book) Settled(op *logv1.Settle, result *logv1.LeaseResult) {
	if b == nil || op.GetProgress() || result.GetRepeated() {
		return
	}
	b.Ended(result)
	if len(op.GetUsed()) == 0 {
		return
	}
	now := hourOf(b.config.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(now)
	for _, s := range result.GetSettlements() {
		if s.GetAmount() < 1 || !named(op.GetUsed(), s) {
			continue
		}
		if c := b.book.names.estimates(s.GetLimit(), s.GetDimension()); c != nil {
			c.off(coarse(plan.Settled{Charged: s.GetAmount(), Used: s.GetUsed()}.Over()), 1)
			b.changed = true
		}
	}
}

// slots is the dimension of limits that count leases at work. Of these nothing is used up.
const slots = "slots"

// Ended counts what was not used of the charges of a lease that was settled or released,
// and what was used on top of them, whatever the buckets had room for. One that ran out
// answers each release again. A repeated answer was counted when it was first given.
func (b *Book) Ended(result *logv1.LeaseResult) {
	if b == nil || result.GetRepeated() {
		return
	}
	if s := result.GetState(); s != logv1.LeaseState_LEASE_STATE_SETTLED && s != logv1.LeaseState_LEASE_STATE_RELEASED {
		return
	}
	now := hourOf(b.config.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(now)
	for _, s := range result.GetSettlements() {
		over := s.GetUsed() - s.GetAmount()
		// What was used as it was granted takes no room.
		if over == 0 || s.GetDimension() == slots && s.GetUsed() == 0 {
			continue
		}
		b.book.keys.of(entry{Limit: s.GetLimit(), Key: s.GetKey(), Dimension: s.GetDimension(), Keyed: true}).add(
			Count{Returned: max(0, -over), Extra: max(0, over)},
		)
		b.changed = true
	}
}

// named says whether a settle says what was used of a charge.
func named(used []*logv1.Usage, s *logv1.Settlement) bool {
	for _, u := range used {
		if u.GetDimension() == s.GetDimension() && (u.GetLimit() == "" && u.GetKey() == "" ||
			u.GetLimit() == s.GetLimit() && u.GetKey() == s.GetKey()) {
			return true
		}
	}
	return false
}

// estimates is where those of a dimension are counted, nil where there is no room.
func (h table) estimates(limit, dimension string) *Count {
	e := entry{Limit: cut(limit), Dimension: cut(dimension), Settled: true}
	if c := h[e]; c != nil {
		return c
	}
	there := 0
	for one := range h {
		if one.Settled {
			there++
		}
	}
	if there >= settledMost || len(h) >= entriesMost {
		return nil
	}
	e.Limit, e.Dimension = strings.Clone(e.Limit), strings.Clone(e.Dimension)
	c := &Count{}
	h[e] = c
	return c
}

// off counts tasks that were off by so much.
func (c *Count) off(over, tasks int64) {
	if c.Estimates == nil {
		c.Estimates = &plan.Tally{}
	}
	(*c.Estimates)[over] = sum((*c.Estimates)[over], tasks)
}

// Up to 10 % errors are told apart exactly, in hundredths of a percent; up to 100 % by
// tenths of a percent; beyond, where no margin helps, by doubling. That are fewer than
// two thousand counts, whatever clients say (G10).
const (
	exactMost = 1000
	tenth     = 10
)

// coarse is an error rounded up to what is told apart. It is not negative.
func coarse(over int64) int64 {
	over = max(0, over)
	switch whole := int64(plan.ErrorMax + 1); {
	case over <= exactMost:
		return over
	case over <= whole:
		return (over + tenth - 1) / tenth * tenth
	default:
		// The largest is 2^49 times the charge, that of 2^53 tokens for one in the worst case
		// less than that.
		steps := bits.Len64(uint64((over - 1) / whole))
		return whole << min(steps, 49)
	}
}

// estimatesOf is what another node says of them.
func estimatesOf(list []*peerv1.UsageEstimate) *plan.Tally {
	var c Count
	for _, e := range list {
		if e.GetTasks() > 0 {
			c.off(coarse(e.GetOverBp()), e.GetTasks())
		}
	}
	return c.Estimates
}

// told is the same for others.
func told(t *plan.Tally) (list []*peerv1.UsageEstimate) {
	if t == nil {
		return nil
	}
	for over, tasks := range *t {
		list = append(list, &peerv1.UsageEstimate{OverBp: over, Tasks: tasks})
	}
	return list
}
