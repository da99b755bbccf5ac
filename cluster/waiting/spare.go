package waiting

import (
	"cmp"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// spared is the answer to an acquire that may not wait, where what it asks for is
// kept for those who do. The wait is that until it is there beside what they need;
// where that never is, the one until they will have been served. Nothing is
// proposed: as long as they wait the answer is the same. It is nil where that has changed
// since the replica was looked at: only an entry grants.
func (d *Desk) spared(now time.Duration, acquire, kept *logv1.Acquire) *logv1.AcquireResult {
	// What is kept grows until heads have all that they need.
	if most := d.keepLocked(queue.Never, acquire, nil); most != nil {
		kept = most
	}
	var result *logv1.AcquireResult
	d.config.View(func(m *fsm.Machine, at bucket.Instant) {
		seen, err := m.Peek(at, kept)
		if err != nil || seen.GetGranted() || !waitable(seen) {
			return
		}
		result = seen
		for _, one := range result.GetDenials() {
			i := chargeOf(kept, one)
			if i < 0 || kept.GetCharges()[i].GetKeep() == 0 {
				continue
			}
			if comes(m, at+bucket.Instant(one.GetRetryAfter()), kept, i) {
				continue
			}
			one.RetryAfter = d.clears(now, m, at, acquire, i)
		}
	})
	if result == nil {
		return nil
	}
	slices.SortStableFunc(result.GetDenials(), func(a, b *logv1.Denial) int {
		return cmp.Compare(b.GetRetryAfter(), a.GetRetryAfter())
	})
	return result
}

// chargeOf is the charge that a denial is of, -1 for none.
func chargeOf(acquire *logv1.Acquire, denial *logv1.Denial) int {
	return slices.IndexFunc(acquire.GetCharges(), func(c *logv1.Charge) bool {
		return c.GetLimit() == denial.GetLimit() && c.GetKey() == denial.GetKey() &&
			c.GetDimension() == denial.GetDimension()
	})
}

// comes reports whether one charge of an acquire can be paid at a later time, if
// nobody else comes.
func comes(m *fsm.Machine, at bucket.Instant, acquire *logv1.Acquire, i int) bool {
	answer, err := m.Peek(at, single(acquire, acquire.GetCharges()[i]))
	return err == nil && answer.GetGranted()
}

// clears is the wait for one charge that only those who wait stand in the way of, or
// that the bucket is short of too.
func (d *Desk) clears(now time.Duration, m *fsm.Machine, at bucket.Instant, acquire *logv1.Acquire, i int) int64 {
	c := acquire.GetCharges()[i]
	class, _ := classOf(d.termsOf(c.GetLimit()), acquire.GetClass())
	wait := hint(d.mu.queue.Clears(now, queue.Place{Limit: c.GetLimit(), Key: c.GetKey()}, class,
		queue.Cost{Dimension: c.GetDimension(), Tokens: c.GetAmount()}))
	if alone, err := m.Peek(at, single(acquire, c)); err == nil && !alone.GetGranted() {
		// Never shorter than what the bucket itself needs (G7).
		wait = max(wait, alone.GetDenials()[0].GetRetryAfter())
	}
	return wait
}

// single is an acquire that asks for one charge only.
func single(acquire *logv1.Acquire, c *logv1.Charge) *logv1.Acquire {
	return &logv1.Acquire{
		Owner: acquire.GetOwner(), Client: acquire.GetClient(), Class: acquire.GetClass(),
		Track: acquire.GetTrack(), Charges: []*logv1.Charge{c},
	}
}
