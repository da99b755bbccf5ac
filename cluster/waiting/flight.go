package waiting

import (
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/queue"
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
	if !d.mu.queue.Waits(&w.Waiter) {
		d.mu.fresh[f] = struct{}{}
	}
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
	w := f.w
	d.groundLocked(f)
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

// groundLocked notes that the fate of a flight is known.
func (d *Desk) groundLocked(f *flight) {
	f.landed, f.w.flight = true, nil
	delete(d.mu.fresh, f)
}

// recallLocked lets those wait at w's place, where it is the first of its class,
// who came after it and are on their way to the next entry: they would overtake
// it.
func (d *Desk) recallLocked(now time.Duration, w *waiter, a *actions) {
	for f := range d.mu.fresh {
		later := f.w
		if later.Arrived < w.Arrived || !d.wants(later, w.Place, w.Class) || !d.config.Door.Recall(&f.Item) {
			continue
		}
		d.groundLocked(f)
		d.unregister(f)
		if !d.config.Door.Unclaim(later.item) || !d.config.Door.Hold(later.item, d) {
			d.dropLocked(now, later)
			continue
		}
		d.settleAt(later, w.Place)
		later.last, later.lastAt = w.last, w.lastAt
		d.joinLocked(now, later, 0, a)
	}
}

// wants reports whether w is of the class at a place that it charges.
func (d *Desk) wants(w *waiter, place queue.Place, class string) bool {
	name, ok := classOf(d.termsOf(place.Limit), w.acquire.GetClass())
	return ok && name == class && slices.ContainsFunc(w.acquire.GetCharges(), func(c *logv1.Charge) bool {
		return c.GetLimit() == place.Limit && c.GetKey() == place.Key
	})
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
	if heard || f.claimed || f.w.stranded || !f.won || !acquire.GetTrack() {
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
	case errors.Is(err, outcome.ErrNotLeader) && !w.item.Relayed:
		// Another leader is on its way, here or elsewhere.
		if d.config.Door.Unclaim(w.item) {
			d.holdLocked(w.item)
		}
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
			d.groundLocked(behind)
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
	w.last, w.lastAt = denied, now
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
