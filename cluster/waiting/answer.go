package waiting

import (
	"cmp"
	"errors"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/queue"
)

// unknownWait is the hint where nobody can say when there is room.
const unknownWait = time.Second

// hint is a wait as it is told: whole milliseconds, rounded up, positive.
func hint(wait time.Duration) int64 {
	if wait == queue.Never {
		wait = unknownWait
	}
	const ms = time.Millisecond
	return int64(max(ms, (wait+ms-1)/ms*ms))
}

// denialAt is a denial by the queue at w's place.
func denialAt(w *waiter, reason logv1.Reason, wait time.Duration) *logv1.Denial {
	return &logv1.Denial{
		Reason: reason, Limit: w.Place.Limit, Key: w.Place.Key,
		Dimension: w.Costs[0].Dimension, RetryAfter: hint(wait),
	}
}

// outranked is the answer to an acquire that may not wait, where others of its
// class do: as a denial by the bucket, with the time until one more would be
// served.
func (d *Desk) outranked(now time.Duration, w *waiter, seen *logv1.AcquireResult) *logv1.AcquireResult {
	status := d.mu.queue.Status(now, w.Place, w.Class, w.Costs)
	reason, wait := logv1.Reason_REASON_RATE, status.ETA
	if head := d.mu.queue.Head(w.Place, w.Class); head != nil {
		if denials := head.Owner.(*waiter).last.GetDenials(); len(denials) > 0 {
			reason = denials[0].GetReason()
		}
	}
	var others []*logv1.Denial
	for _, one := range seen.GetDenials() {
		if one.GetLimit() != w.Place.Limit || one.GetKey() != w.Place.Key {
			others = append(others, one)
			continue
		}
		// Never shorter than what the bucket itself needs (G7).
		wait = max(wait, time.Duration(one.GetRetryAfter()))
	}
	denials := append([]*logv1.Denial{denialAt(w, reason, wait)}, others...)
	slices.SortStableFunc(denials, func(a, b *logv1.Denial) int {
		return cmp.Compare(b.GetRetryAfter(), a.GetRetryAfter())
	})
	return &logv1.AcquireResult{
		Denials: denials, Remaining: seen.GetRemaining(),
		Queue: &logv1.QueueStatus{Position: status.Position, Eta: hint(status.ETA)},
	}
}

// full is the answer where as many wait as may.
func (d *Desk) full(now time.Duration, w *waiter, status queue.Status) *logv1.AcquireResult {
	result := &logv1.AcquireResult{
		Denials:   []*logv1.Denial{denialAt(w, logv1.Reason_REASON_QUEUE_FULL, status.ETA)},
		Remaining: w.last.GetRemaining(),
		Queue:     &logv1.QueueStatus{Position: status.Position, Eta: hint(status.ETA)},
	}
	if w.queued {
		result.Queue.Waited = int64(max(0, now-w.Arrived))
	}
	return result
}

// expired is the answer to one that has waited as long as it wanted to.
func (d *Desk) expired(now time.Duration, w *waiter) *logv1.AcquireResult {
	status := d.statusOf(now, w)
	wait := time.Duration(status.GetEta())
	for _, one := range w.last.GetDenials() {
		if one.GetLimit() == w.Place.Limit && one.GetKey() == w.Place.Key {
			// Never shorter than what the bucket itself needs (G7).
			wait = max(wait, time.Duration(one.GetRetryAfter())-(now-w.lastAt))
		}
	}
	return &logv1.AcquireResult{
		Denials:   []*logv1.Denial{denialAt(w, logv1.Reason_REASON_WAIT_EXPIRED, wait)},
		Remaining: w.last.GetRemaining(),
		Queue:     status,
	}
}

// statusOf says where w stood when it came, how long one more would wait now, and
// how long it was held.
func (d *Desk) statusOf(now time.Duration, w *waiter) *logv1.QueueStatus {
	next := d.mu.queue.Status(now, w.Place, w.Class, w.Costs)
	return &logv1.QueueStatus{
		Position: w.came.Position, Eta: int64(min(next.ETA, 24*time.Hour)), Waited: int64(max(0, now-w.Arrived)),
	}
}

// isElection reports whether a leader may come by itself.
func isElection(why error) bool { return errors.Is(why, outcome.ErrNoLeader) }
