package waiting

import (
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// flight is what is proposed for one waiter.
type flight struct {
	door.Item
	desk *Desk
	w    *waiter
	// run are those of its lane that are proposed with it, in order.
	run []*flight
	// landed: its fate is known. won: it was granted, and for the first time.
	landed, won bool
	// claimed: somebody asked for the lease again meanwhile.
	claimed bool
}

// Answer implements door.Owner.
func (f *flight) Answer(result *logv1.Result, err error) { f.desk.land(f, result, err) }

// heldMax bounds what is added to the life of a lease.
const heldMax = time.Hour

// launchLocked proposes w, behind those of its run. w is not in the queue yet, or
// it is flying there.
func (d *Desk) launchLocked(now time.Duration, w *waiter, run []*flight, a *actions) []*flight {
	open := false
	d.config.Door.Claim([]*door.Item{w.item}, d, func(*door.Item) bool {
		open = true
		return true
	})
	if !open {
		// The door has ended it, and is about to say so.
		d.dropLocked(now, w)
		return run
	}
	acquire := d.keepLocked(now, w.acquire, w)
	if acquire == nil {
		acquire = proto.CloneOf(w.acquire)
	}
	if w.queued {
		// The holder counts from before it asked (T24).
		acquire.Held = int64(min(heldMax, max(0, now-w.Arrived)))
	}
	f := &flight{desk: d, w: w}
	f.Operation = &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: acquire}}
	f.Deadline = time.Now().Add(d.config.FlightMax)
	f.Relayed = true
	f.Owner = f
	w.flight = f
	if acquire.GetTrack() {
		d.mu.flying[string(acquire.GetLeaseId())] = f
	}
	a.flights = append(a.flights, f)
	return append(run, f)
}

// dropLocked takes out of the queue one that the door has ended.
func (d *Desk) dropLocked(now time.Duration, w *waiter) {
	if d.mu.queue.Waits(&w.Waiter) && !d.mu.queue.Cancel(now, &w.Waiter) {
		d.mu.queue.Denied(now, &w.Waiter, 0)
	}
	d.removeLocked(w)
}

// propose hands flights to the proposer, in order.
func (d *Desk) propose(flights []*flight) {
	items := make([]*door.Item, 0, len(flights))
	for _, f := range flights {
		size, err := batch.Size(f.Operation)
		if err != nil {
			f.Answer(refusedSize(err), nil)
			continue
		}
		f.Size = size
		if !d.config.Door.Enter(&f.Item) {
			f.Answer(nil, outcome.ErrClosed)
			continue
		}
		items = append(items, &f.Item)
	}
	if d.config.Propose(items...) {
		return
	}
	for _, it := range items {
		d.config.Door.Answer(it, nil, outcome.ErrNotLeader)
	}
}

func refusedSize(err error) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Refusal{Refusal: &logv1.Refusal{
		Cause: logv1.Refusal_CAUSE_BAD_FIELD, Field: "operation", Message: err.Error(),
	}}}
}

// runMax bounds what is proposed at once of one lane.
const runMax = 128

// tryLocked looks at a head that is due, and proposes it, with those behind it
// that can be paid too, or sets when to look again. It is flying in the queue.
func (d *Desk) tryLocked(now time.Duration, w *waiter, a *actions) {
	if place, older := d.olderLocked(w); older {
		d.moveLocked(now, w, place, 0, a)
		return
	}
	acquire := d.keepLocked(now, w.acquire, w)
	seen := sight{}
	if acquire != nil {
		// What others keep from it makes no denial final.
		seen = d.look(w.acquire)
	} else {
		acquire = w.acquire
	}
	if !seen.final {
		kept := d.look(acquire)
		if acquire == w.acquire || !kept.final {
			seen = kept
		} else {
			d.waitLocked(now, w, seen.result, queue.Never)
			return
		}
	}
	if seen.final || seen.result.GetGranted() {
		run := d.launchLocked(now, w, nil, a)
		if len(run) > 0 && !seen.final {
			run = d.moreLocked(now, run, acquire, a)
		}
		for _, f := range run {
			f.run = run
		}
		return
	}
	first := seen.result.GetDenials()[0]
	if place := (queue.Place{Limit: first.GetLimit(), Key: first.GetKey()}); place != w.Place {
		w.last = seen.result
		d.moveLocked(now, w, place, time.Duration(first.GetRetryAfter()), a)
		return
	}
	d.waitLocked(now, w, seen.result, time.Duration(first.GetRetryAfter()))
}

// moreLocked adds to a run those who come after its last and can be paid too, as
// far as the replica says.
func (d *Desk) moreLocked(now time.Duration, run []*flight, acquire *logv1.Acquire, a *actions) []*flight {
	sum := proto.CloneOf(acquire)
	d.config.View(func(m *fsm.Machine, at bucket.Instant) {
		fits := func(next *queue.Waiter) bool {
			for i, c := range next.Costs {
				sum.Charges[i].Amount += c.Tokens
			}
			result, err := m.Peek(at, sum)
			return err == nil && result.GetGranted()
		}
		for len(run) < runMax {
			next := d.mu.queue.More(now, &run[len(run)-1].w.Waiter, fits)
			if next == nil {
				return
			}
			before := len(run)
			if run = d.launchLocked(now, next.Owner.(*waiter), run, a); len(run) == before {
				return
			}
		}
	})
	return run
}

// olderLocked is another place that w charges, where the head of its class has
// waited for longer than w: taking from it would overtake that head.
func (d *Desk) olderLocked(w *waiter) (queue.Place, bool) {
	if w.Sole {
		return queue.Place{}, false
	}
	for _, c := range w.acquire.GetCharges() {
		place := queue.Place{Limit: c.GetLimit(), Key: c.GetKey()}
		class, ok := classOf(d.termsOf(c.GetLimit()), w.acquire.GetClass())
		if !ok || place == w.Place {
			continue
		}
		if head := d.mu.queue.Head(place, class); head != nil && head.Arrived < w.Arrived {
			return place, true
		}
	}
	return queue.Place{}, false
}

// waitLocked puts a head that was looked at back: denied, for so long.
func (d *Desk) waitLocked(now time.Duration, w *waiter, denied *logv1.AcquireResult, wait time.Duration) {
	w.last = denied
	d.noteOwnLocked(now, w)
	d.mu.queue.Denied(now, &w.Waiter, wait)
}

// noteOwnLocked tells the queue when the class's own part will be full: what
// overflows from then on is the head's (T48).
func (d *Desk) noteOwnLocked(now time.Duration, w *waiter) {
	terms := d.termsOf(w.Place.Limit)
	if len(terms.Classes) < 2 {
		return
	}
	d.config.View(func(m *fsm.Machine, at bucket.Instant) {
		in, err := m.Inspect(at, w.Place.Limit, w.Place.Key)
		if err != nil {
			return
		}
		for i := range in.Buckets {
			b := &in.Buckets[i]
			for _, c := range b.Classes {
				if c.Name != w.Class {
					continue
				}
				missing := c.SubBurst - c.Level + c.Debt
				if fills, ok := d.mu.queue.FillsIn(&w.Waiter, b.Dimension, missing); ok {
					d.mu.queue.OwnFull(&w.Waiter, b.Dimension, now+fills)
				}
			}
		}
	})
}

// moveLocked lets w, who is flying or in no queue, wait at another place: the one
// that denies it longest.
func (d *Desk) moveLocked(
	now time.Duration, w *waiter, place queue.Place, wait time.Duration, a *actions,
) {
	if d.mu.queue.Waits(&w.Waiter) && !d.mu.queue.Cancel(now, &w.Waiter) {
		d.mu.queue.Denied(now, &w.Waiter, 0)
	}
	d.settleAt(w, place)
	d.joinLocked(now, w, wait, a)
}

// land takes note of what became of a flight.
func (d *Desk) land(f *flight, result *logv1.Result, err error) {
	var a actions
	d.mu.Lock()
	d.landLocked(d.config.Elapsed(), f, result, err, &a)
	d.mu.Unlock()
	d.nudge()
	d.do(&a)
}

func (d *Desk) landLocked(now time.Duration, f *flight, result *logv1.Result, err error, a *actions) {
	if f.landed {
		return
	}
	f.landed = true
	w := f.w
	w.flight = nil
	decided := result.GetAcquire()
	switch {
	case err != nil:
		d.lostLocked(now, f, err, a)
	case decided != nil && !decided.GetGranted():
		d.unregister(f)
		d.deniedLocked(now, f, decided, a)
	default:
		if decided != nil {
			f.won = !decided.GetRepeated()
			d.mu.queue.Granted(now, &w.Waiter)
			if w.queued {
				decided.Queue = d.statusOf(now, w)
			}
		} else {
			d.dropLocked(now, w)
		}
		d.removeLocked(w)
		a.answers = append(a.answers, answer{item: w.item, result: result, flight: f})
	}
}

// unregister forgets that the lease is being asked for.
func (d *Desk) unregister(f *flight) {
	id := string(f.Operation.GetAcquire().GetLeaseId())
	if d.mu.flying[id] == f {
		delete(d.mu.flying, id)
	}
}

// forget ends a flight whose result was handed on; heard says that somebody was
// there to take it. A tracked grant that nobody waits for any more is given back
// (T26), but not where the lease was asked for again: the caller has come back.
func (d *Desk) forget(f *flight, heard bool) {
	acquire := f.Operation.GetAcquire()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unregister(f)
	if heard || f.claimed || !f.won || !acquire.GetTrack() {
		return
	}
	release := &logv1.Operation{Kind: &logv1.Operation_Release{Release: &logv1.Release{
		LeaseId: acquire.GetLeaseId(), Owner: acquire.GetOwner(), Client: acquire.GetClient(),
	}}}
	size, err := batch.Size(release)
	if err != nil {
		return
	}
	// Not through another leader: there the caller may have come back.
	it := &door.Item{
		Operation: release, Size: size, Deadline: time.Now().Add(d.config.FlightMax), Relayed: true, Owner: nobody{},
	}
	if d.config.Door.Enter(it) && !d.config.Propose(it) {
		d.config.Door.Recall(it)
	}
}

// nobody waits for the answer to a release.
type nobody struct{}

// Answer implements door.Owner.
func (nobody) Answer(*logv1.Result, error) {}

// lostLocked takes note of a flight without a result.
func (d *Desk) lostLocked(now time.Duration, f *flight, err error, a *actions) {
	d.unregister(f)
	w := f.w
	unknown := errors.Is(err, outcome.ErrUnknown)
	if unknown {
		d.mu.queue.Granted(now, &w.Waiter)
	} else {
		d.dropLocked(now, w)
	}
	d.removeLocked(w)
	switch {
	case errors.Is(err, outcome.ErrNotLeader):
		a.reroute = append(a.reroute, w.item)
	case unknown && w.item.Repeatable() && !w.item.Relayed && !errors.Is(err, outcome.ErrDeadline):
		// Asking again with the same lease id is harmless (G4).
		w.item.Doubtful = true
		a.reroute = append(a.reroute, w.item)
	default:
		a.answers = append(a.answers, answer{item: w.item, err: err})
	}
}

// deniedLocked puts w at its place in the queue, or ends it.
func (d *Desk) deniedLocked(now time.Duration, f *flight, denied *logv1.AcquireResult, a *actions) {
	w := f.w
	// Those behind it must not be granted before it. What has not been claimed for
	// an entry comes back.
	for _, behind := range f.run {
		if !behind.landed && d.config.Door.Recall(&behind.Item) {
			behind.landed, behind.w.flight = true, nil
			d.unregister(behind)
			d.backLocked(now, behind.w, 0, a)
		}
	}
	first := denied.GetDenials()[0]
	wait := time.Duration(first.GetRetryAfter())
	place := queue.Place{Limit: first.GetLimit(), Key: first.GetKey()}
	fits := first.GetReason() != logv1.Reason_REASON_QUOTA || now+wait <= w.Until
	if kept := keepOf(f); !fits || !kept && !waitable(denied) || d.termsOf(place.Limit).Max < 1 {
		d.dropLocked(now, w)
		if w.queued {
			denied.Queue = d.statusOf(now, w)
		}
		a.answer(w.item, denied)
		return
	}
	w.last = denied
	if d.mu.leads && place != w.Place {
		if !d.config.Door.Unclaim(w.item) || !d.config.Door.Hold(w.item, d) {
			d.dropLocked(now, w)
			return
		}
		d.moveLocked(now, w, place, wait, a)
		return
	}
	// The replica says more exactly for how long.
	d.backLocked(now, w, time.Millisecond, a)
}

// keepOf reports whether f had to leave something to others.
func keepOf(f *flight) bool {
	for _, c := range f.Operation.GetAcquire().GetCharges() {
		if c.GetKeep() > 0 {
			return true
		}
	}
	return false
}

// backLocked puts one that certainly was not granted back where it was.
func (d *Desk) backLocked(now time.Duration, w *waiter, wait time.Duration, a *actions) {
	if !d.mu.leads || !d.mu.queue.Waits(&w.Waiter) {
		d.dropLocked(now, w)
		a.reroute = append(a.reroute, w.item)
		return
	}
	d.mu.queue.Denied(now, &w.Waiter, wait)
	if !d.config.Door.Unclaim(w.item) || !d.config.Door.Hold(w.item, d) {
		d.dropLocked(now, w)
	}
}
