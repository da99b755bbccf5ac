package waiting

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Take sees every item before it is proposed. It takes acquires that may wait,
// and answers those that may not where others of their class do: nothing
// overtakes the head (G6). It returns false for what goes on as it is; others may
// wait for its buckets too, and then its operation says what to leave to them.
func (d *Desk) Take(it *door.Item) bool {
	if it.Plain != nil {
		// It was on its way here, or elsewhere, before. Those who waited then may not
		// any more.
		it.Operation, it.Plain = it.Plain, nil
	}
	acquire := it.Operation.GetAcquire()
	if acquire == nil || it.MaxWait == 0 && d.waiting.Load() == 0 {
		return false
	}
	if _, mine := it.Owner.(*flight); mine {
		return false
	}
	var a actions
	taken := d.take(it, acquire, &a)
	d.do(&a)
	return taken
}

func (d *Desk) take(it *door.Item, acquire *logv1.Acquire, a *actions) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mu.leads {
		return false
	}
	if f := d.mu.flying[string(acquire.GetLeaseId())]; f != nil && acquire.GetTrack() {
		// Whoever asked first may have gone, but somebody waits for the lease.
		f.claimed = true
	}
	now := d.config.Elapsed()
	w := d.waiterFor(now, it, acquire)
	if place, busy := d.busyLocked(acquire); busy {
		seen := d.look(acquire)
		if seen.final {
			return false
		}
		d.settleAt(w, place)
		if it.MaxWait == 0 {
			a.answer(it, d.outranked(now, w, seen.result))
			return true
		}
		if d.config.Door.Hold(it, d) {
			w.last, w.lastAt = seen.result, now
			d.joinLocked(now, w, 0, a)
		}
		return true
	}
	if it.MaxWait > 0 {
		d.addLocked(w)
		d.launchLocked(now, w, nil, a)
		return true
	}
	if kept := d.keepLocked(now, acquire, nil); kept != nil {
		if seen := d.look(kept); !seen.final && !seen.result.GetGranted() {
			if denied := d.spared(now, acquire, kept); denied != nil {
				a.answer(it, denied)
				return true
			}
		}
		op := &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: kept}}
		if size, err := batch.Size(op); err == nil {
			it.Plain, it.Operation, it.Size = it.Operation, op, size
		}
	}
	return false
}

func (d *Desk) waiterFor(now time.Duration, it *door.Item, acquire *logv1.Acquire) *waiter {
	w := &waiter{item: it, acquire: acquire}
	w.Owner, w.Client = w, acquire.GetClient()
	w.Arrived = now
	if !it.Since.IsZero() {
		w.Arrived -= max(0, time.Since(it.Since))
	}
	w.Until = w.Arrived + it.MaxWait
	return w
}

// addLocked notes that w is the desk's.
func (d *Desk) addLocked(w *waiter) {
	d.mu.waiters[w.item] = w
	d.waiting.Store(int64(len(d.mu.waiters)))
}

// settleAt makes a place the one where w waits. The limit must be known.
func (d *Desk) settleAt(w *waiter, place queue.Place) {
	w.Place, w.Costs, w.Sole = place, nil, true
	w.Class, _ = classOf(d.termsOf(place.Limit), w.acquire.GetClass())
	for _, c := range w.acquire.GetCharges() {
		if c.GetLimit() != place.Limit || c.GetKey() != place.Key {
			w.Sole = false
			continue
		}
		w.Costs = append(w.Costs, queue.Cost{Dimension: c.GetDimension(), Tokens: c.GetAmount()})
	}
}

var noTerms = &queue.Terms{}

func (d *Desk) termsOf(limit string) *queue.Terms {
	if t := d.mu.terms[limit]; t != nil {
		return t
	}
	return noTerms
}

// busyLocked is the first place that the acquire charges where others of its
// class wait.
func (d *Desk) busyLocked(acquire *logv1.Acquire) (queue.Place, bool) {
	if d.mu.queue.Len() == 0 {
		return queue.Place{}, false
	}
	for _, c := range acquire.GetCharges() {
		class, ok := classOf(d.termsOf(c.GetLimit()), acquire.GetClass())
		place := queue.Place{Limit: c.GetLimit(), Key: c.GetKey()}
		if ok && d.mu.queue.Busy(place, class) {
			return place, true
		}
	}
	return queue.Place{}, false
}

// joinLocked lets w wait at its place, where it was denied last and told to wait
// so long.
func (d *Desk) joinLocked(now time.Duration, w *waiter, wait time.Duration, a *actions) {
	status, ok := d.mu.queue.Push(now, &w.Waiter, wait)
	if !ok {
		d.removeLocked(w)
		a.answer(w.item, d.full(now, w, status))
		return
	}
	if !w.queued {
		w.queued, w.came = true, status
	}
	d.addLocked(w)
	d.nudge()
	if status.Position == 1 {
		d.recallLocked(now, w, a)
	}
}

// keepLocked is the acquire with what it must leave to those who wait in other
// classes, nil where that is nothing. w is whom it is for, if it waits.
func (d *Desk) keepLocked(now time.Duration, acquire *logv1.Acquire, w *waiter) *logv1.Acquire {
	var kept *logv1.Acquire
	costs := 0
	for i, c := range acquire.GetCharges() {
		place := queue.Place{Limit: c.GetLimit(), Key: c.GetKey()}
		class, ok := classOf(d.termsOf(c.GetLimit()), acquire.GetClass())
		if !ok {
			continue
		}
		keep := d.mu.queue.Keep(now, place, class, c.GetDimension())
		if w != nil && place == w.Place {
			keep = max(keep, w.Lead(costs))
			costs++
		}
		if keep == 0 {
			continue
		}
		if kept == nil {
			kept = proto.CloneOf(acquire)
		}
		kept.Charges[i].Keep = keep
	}
	return kept
}

// sight is what the replica says of an acquire.
type sight struct {
	// result is a grant or a denial with a wait; nil where final.
	result *logv1.AcquireResult
	// final: the state machine's answer will not be one that anybody waits for: a
	// refusal, the repetition of a lease id, never, or a bound of another kind.
	final bool
}

// look asks the replica. It decides nothing: what is granted is granted by an
// entry.
func (d *Desk) look(acquire *logv1.Acquire) (seen sight) {
	d.config.View(func(m *fsm.Machine, now bucket.Instant) {
		if acquire.GetTrack() && m.Remembers(acquire.GetLeaseId()) {
			seen.final = true
			return
		}
		result, err := m.Peek(now, acquire)
		seen.result = result
		seen.final = err != nil || !result.GetGranted() && !waitable(result)
	})
	return seen
}

// waitables are the reasons of a denial that waiting helps against.
var waitables = []logv1.Reason{
	logv1.Reason_REASON_RATE, logv1.Reason_REASON_DEBT, logv1.Reason_REASON_CONCURRENCY,
	logv1.Reason_REASON_PAUSED, logv1.Reason_REASON_QUOTA,
}

func waitable(denied *logv1.AcquireResult) bool {
	return !slices.ContainsFunc(denied.GetDenials(), func(one *logv1.Denial) bool {
		return one.GetRetryAfter() == 0 || !slices.Contains(waitables, one.GetReason())
	})
}
