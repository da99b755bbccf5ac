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
	// Seq is its number with the Withdrawer it was claimed for.
	Seq uint64

	state      state
	to         Withdrawer
	prev, next *Item
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
// nothing is. Safe for concurrent use.
type Door struct {
	openMax int
	// armed wakes the sweeper when the first operation comes in.
	armed chan struct{}

	mu sync.Mutex
	// list is a ring through all open operations, oldest first.
	list Item
	open int
	// closed is what newcomers are refused with.
	closed error
}

// SweepEvery is how late an answer to a passed deadline may be.
const SweepEvery = 10 * time.Millisecond

// New returns a door for at most openMax items at a time.
func New(openMax int) *Door {
	d := &Door{openMax: openMax, armed: make(chan struct{}, 1)}
	d.list.next, d.list.prev = &d.list, &d.list
	return d
}

// Admit lets it in, or says why not.
func (d *Door) Admit(it *Item) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed != nil:
		return d.closed
	case d.open >= d.openMax:
		return fmt.Errorf("%w: %d are", outcome.ErrOverloaded, d.open)
	}
	it.state = waiting
	last := d.list.prev
	last.next, it.prev, it.next, d.list.prev = it, last, &d.list, it
	d.open++
	if d.open == 1 {
		select {
		case d.armed <- struct{}{}:
		default:
		}
	}
	return nil
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

// takeLocked unlinks it for its answer, once.
func (d *Door) takeLocked(it *Item) bool {
	if it.state != waiting && it.state != proposed {
		return false
	}
	it.state, it.to = answered, nil
	it.prev.next, it.next.prev = it.next, it.prev
	it.prev, it.next = nil, nil
	d.open--
	return true
}

// Answer ends it, unless it has ended. An answer that comes after the deadline
// is dropped here.
func (d *Door) Answer(it *Item, result *logv1.Result, err error) {
	d.mu.Lock()
	mine := d.takeLocked(it)
	d.mu.Unlock()
	if mine {
		it.Owner.Answer(result, err)
	}
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
	return d.end(func(it *Item) error {
		switch {
		case now.Before(it.Deadline):
			return nil
		case it.state == waiting:
			return outcome.ErrDeadlineWaiting
		default:
			return outcome.ErrDeadlineProposed
		}
	})
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
	})
}

// Abandon ends everything: raft is gone, no answer can come.
func (d *Door) Abandon() {
	d.end(func(it *Item) error {
		if it.state == waiting {
			return outcome.ErrClosed
		}
		return outcome.ErrClosedProposed
	})
}

// end ends every open operation for which why returns an error, and reports
// whether any is left open.
func (d *Door) end(why func(*Item) error) bool {
	type ended struct {
		it  *Item
		err error
	}
	var over []ended
	d.mu.Lock()
	for it := d.list.next; it != &d.list; {
		next := it.next
		if err := why(it); err != nil && d.takeLocked(it) {
			over = append(over, ended{it, err})
		}
		it = next
	}
	left := d.open > 0
	d.mu.Unlock()
	for _, e := range over {
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
