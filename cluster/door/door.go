// Package door lets operations in, a bounded number at a time, and answers each
// exactly once: with a result, when its deadline passes, when its caller leaves
// or when the node closes. It knows at any time whether an operation certainly
// was not proposed.
package door

import (
	"fmt"
	"slices"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// Item is one operation on its way. Its fields belong to whoever has the item;
// what the door guards is not exported.
type Item struct {
	// Operation is what to do. It must not change until the item is answered.
	Operation *logv1.Operation
	// Size is what it takes in an entry, in bytes.
	Size int
	// Deadline is when the caller stops waiting.
	Deadline time.Time
	// Owner gets the answer.
	Owner Owner
	// Relayed says that another node sent it: it is not sent on.
	Relayed bool
	// Hops counts how often it was handed to a leader.
	Hops int
	// MaxWait is how long an acquire may wait in the leader's queue, from Since on,
	// when it came to the first node. 0: not at all.
	MaxWait time.Duration
	Since   time.Time
	// Plain is the operation as it came, where Operation was changed on its way; else
	// nil.
	Plain *logv1.Operation
	// Doubtful says that it may have happened already: it was sent again because
	// that is harmless.
	Doubtful bool
	// Seq is its number with the Withdrawer it was claimed for.
	Seq uint64

	state      state
	to         Withdrawer
	prev, next *Item
}

// Repeatable reports whether it waits and sending it again is harmless: the lease
// id makes one of both (G4).
func (it *Item) Repeatable() bool {
	return it.MaxWait > 0 && it.Operation.GetAcquire().GetTrack()
}

// Owner is who waits for an item.
type Owner interface {
	// Answer is called exactly once for each item that was let in, from any
	// goroutine, without a lock. It must not block: it may hold up the answers of
	// a whole entry. Either the result is set or the error.
	Answer(result *logv1.Result, err error)
}

// Withdrawer is where proposed items can be taken back from, as far as sparing
// somebody the work goes: another node.
type Withdrawer interface {
	Withdraw(it *Item)
}

// state is how far an Item has come.
type state int

const (
	// Zero is an item that was not let in.
	_ state = iota
	// waiting: certainly not proposed.
	waiting
	// proposed: given to raft or sent to the leader. Nobody can take it back.
	proposed
	// answered: its owner was or is being told.
	answered
)

// Door lets items in. There is one goroutine for all deadlines, no timer for
// each: it looks through what is open every SweepEvery, and sleeps while
// nothing is. Those that may wait in a queue are apart: there may be many more of
// them, and they must keep nobody else out. Safe for concurrent use.
type Door struct {
	openMax, patientMax int
	// armed wakes the sweeper when the first operation comes in.
	armed chan struct{}

	mu sync.Mutex
	// list is a ring through all open operations, oldest first, queued one through
	// those that have a MaxWait.
	list, queued  Item
	open, patient int
	// soonest is no later than the first deadline in queued.
	soonest time.Time
	// closed is what newcomers are refused with.
	closed error
}

// SweepEvery is how late an answer to a passed deadline may be.
const SweepEvery = 10 * time.Millisecond

// New returns a door for at most openMax items at a time, and at most patientMax
// that have a MaxWait.
func New(openMax, patientMax int) *Door {
	d := &Door{openMax: openMax, patientMax: patientMax, armed: make(chan struct{}, 1)}
	d.list.next, d.list.prev = &d.list, &d.list
	d.queued.next, d.queued.prev = &d.queued, &d.queued
	return d
}

// Admit lets it in, or says why not.
func (d *Door) Admit(it *Item) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed != nil:
		return d.closed
	case it.MaxWait == 0 && d.open >= d.openMax:
		return fmt.Errorf("%w: %d are", outcome.ErrOverloaded, d.open)
	case it.MaxWait > 0 && d.patient >= d.patientMax:
		return fmt.Errorf("%w: %d are", outcome.ErrOverloaded, d.patient)
	}
	d.linkLocked(it)
	return nil
}

// Enter lets an item of the node's own in, on behalf of one that is in already,
// however many are. It returns false once the door is closed.
func (d *Door) Enter(it *Item) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed != nil {
		return false
	}
	d.linkLocked(it)
	return true
}

func (d *Door) linkLocked(it *Item) {
	it.state = waiting
	ring := &d.list
	if it.MaxWait > 0 {
		ring = &d.queued
		d.patient++
		if d.patient == 1 || it.Deadline.Before(d.soonest) {
			d.soonest = it.Deadline
		}
	} else {
		d.open++
	}
	last := ring.prev
	last.next, it.prev, it.next, ring.prev = it, last, ring, it
	if d.open+d.patient == 1 {
		select {
		case d.armed <- struct{}{}:
		default:
		}
	}
}

// Claim marks those of ps that still wait as proposed, in order, until take
// refuses one. It returns how many of ps are dealt with. They go to the leader
// over to, or to raft where it is nil.
func (d *Door) Claim(ps []*Item, to Withdrawer, take func(*Item) bool) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, it := range ps {
		if it.state != waiting {
			continue
		}
		if !take(it) {
			return i
		}
		it.state, it.to = proposed, to
	}
	return len(ps)
}

// StillWaiting forgets those of ps that were answered, in place.
func (d *Door) StillWaiting(ps []*Item) []*Item {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(ps, func(it *Item) bool { return it.state != waiting })
}

// Unclaim marks it as waiting again: it is certain that it was not proposed. It
// returns false when it was answered meanwhile.
func (d *Door) Unclaim(it *Item) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if it.state == answered {
		return false
	}
	it.state, it.to = waiting, nil
	return true
}

// Hold gives a waiting item to a holder, who is told when it ends by its deadline,
// its caller or the door. It returns false when it has ended.
func (d *Door) Hold(it *Item, holder Withdrawer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if it.state != waiting {
		return false
	}
	it.to = holder
	return true
}

// Recall ends an item without an answer to its owner, if it certainly was not
// proposed.
func (d *Door) Recall(it *Item) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return it.state == waiting && d.takeLocked(it)
}

// takeLocked unlinks it for its answer, once.
func (d *Door) takeLocked(it *Item) bool {
	if it.state != waiting && it.state != proposed {
		return false
	}
	it.state, it.to = answered, nil
	it.prev.next, it.next.prev = it.next, it.prev
	it.prev, it.next = nil, nil
	if it.MaxWait > 0 {
		d.patient--
	} else {
		d.open--
	}
	return true
}

// Answer ends it, unless it has ended; then it returns false. An answer that
// comes after the deadline is dropped here.
func (d *Door) Answer(it *Item, result *logv1.Result, err error) bool {
	d.mu.Lock()
	mine := d.takeLocked(it)
	d.mu.Unlock()
	if mine {
		it.Owner.Answer(result, err)
	}
	return mine
}

// AnswerAll ends every operation of one entry under one lock, by position.
func (d *Door) AnswerAll(ps []*Item, results []*logv1.Result) {
	mine := make([]bool, len(ps))
	d.mu.Lock()
	for i, it := range ps {
		mine[i] = d.takeLocked(it)
	}
	d.mu.Unlock()
	for i, it := range ps {
		if mine[i] {
			it.Owner.Answer(results[i], nil)
		}
	}
}

// Cancel ends it because its caller has gone.
func (d *Door) Cancel(it *Item) {
	d.mu.Lock()
	was, to := it.state, it.to
	mine := d.takeLocked(it)
	d.mu.Unlock()
	if !mine {
		return
	}
	if to != nil {
		to.Withdraw(it)
	}
	if was == waiting {
		it.Owner.Answer(nil, outcome.ErrCanceledWaiting)
		return
	}
	it.Owner.Answer(nil, outcome.ErrCanceledProposed)
}

// expire ends every operation whose deadline is not after now, and reports
// whether any is left open.
func (d *Door) expire(now time.Time) bool {
	late := func(it *Item) error {
		switch {
		case now.Before(it.Deadline):
			return nil
		case it.state == waiting:
			return outcome.ErrDeadlineWaiting
		default:
			return outcome.ErrDeadlineProposed
		}
	}
	d.mu.Lock()
	rings := []*Item{&d.list}
	if d.patient > 0 && !now.Before(d.soonest) {
		rings = append(rings, &d.queued)
	}
	d.mu.Unlock()
	return d.end(late, rings...)
}

// Close refuses newcomers with err and ends those that wait with it. What was
// proposed goes on.
func (d *Door) Close(err error) {
	d.mu.Lock()
	d.closed = err
	d.mu.Unlock()
	d.end(func(it *Item) error {
		if it.state == waiting {
			return err
		}
		return nil
	}, &d.list, &d.queued)
}

// Abandon ends everything: raft is gone, no answer can come.
func (d *Door) Abandon() {
	d.end(func(it *Item) error {
		if it.state == waiting {
			return outcome.ErrClosed
		}
		return outcome.ErrClosedProposed
	}, &d.list, &d.queued)
}

// end ends every operation of the rings for which why returns an error, and
// reports whether any is left open. Whoever holds one of those that may wait is
// told; another leader has its deadline, and ends the rest by itself.
func (d *Door) end(why func(*Item) error, rings ...*Item) bool {
	type ended struct {
		it  *Item
		to  Withdrawer
		err error
	}
	var over []ended
	d.mu.Lock()
	for _, ring := range rings {
		var soonest time.Time
		for it := ring.next; it != ring; {
			next, to := it.next, it.to
			if err := why(it); err != nil && d.takeLocked(it) {
				over = append(over, ended{it, to, err})
			} else if soonest.IsZero() || it.Deadline.Before(soonest) {
				soonest = it.Deadline
			}
			it = next
		}
		if ring == &d.queued {
			d.soonest = soonest
		}
	}
	left := d.open+d.patient > 0
	d.mu.Unlock()
	for _, e := range over {
		if e.to != nil && e.it.MaxWait > 0 {
			e.to.Withdraw(e.it)
		}
		e.it.Owner.Answer(nil, e.err)
	}
	return left
}

// Sweep runs until stop is closed and ends what passes its deadline.
func (d *Door) Sweep(stop <-chan struct{}) {
	ticker := time.NewTicker(SweepEvery)
	defer ticker.Stop()
	for {
		ticker.Stop()
		select {
		case <-stop:
			return
		case <-d.armed:
		}
		ticker.Reset(SweepEvery)
		for left := true; left; {
			select {
			case <-stop:
				return
			case now := <-ticker.C:
				left = d.expire(now)
			}
		}
	}
}
