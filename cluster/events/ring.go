package events

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// DefaultSize is how many events a ring keeps by default: at their largest
// about 4 MiB.
const DefaultSize = 4096

// ErrCompacted: the events asked for are no longer kept. The error is a
// *CompactedError.
var ErrCompacted = errors.New("events compacted")

// ErrClosed: the ring was closed.
var ErrClosed = errors.New("events closed")

// CompactedError says from where a reader may begin.
type CompactedError struct {
	From uint64
	// Oldest is the lowest index from which nothing is missing.
	Oldest uint64
}

// Error names both indices.
func (e *CompactedError) Error() string {
	return fmt.Sprintf("events from index %d are no longer kept, the oldest is %d", e.From, e.Oldest)
}

// Is matches ErrCompacted.
func (e *CompactedError) Is(target error) bool { return target == ErrCompacted }

// LostError tells a reader that it was too slow. It goes on with the oldest
// event that is kept; the error is not final.
type LostError struct {
	// Lost is how many events it missed; Skipped, of how many entries, where this
	// node got those as a snapshot and knows of no events in them.
	Lost, Skipped uint64
	// Resume is the index from which it could have asked instead.
	Resume uint64
}

// Error says how many.
func (e *LostError) Error() string {
	if e.Skipped > 0 {
		return fmt.Sprintf("events lost of %d entries that came as a snapshot, go on at index %d", e.Skipped, e.Resume)
	}
	return fmt.Sprintf("%d events lost, the oldest kept is at index %d", e.Lost, e.Resume)
}

// Ring keeps the last events. It is safe for concurrent use.
type Ring struct {
	now  func() time.Time
	hear func(e Event, client string)

	mu struct {
		sync.Mutex
		closed bool
		events []Event
		// next is the sequence of the next event; it lies at next % len.
		next uint64
		// place is that of the last event.
		place uint64
		// lost is the highest place at which something is not kept: events that
		// were overwritten, or happened before this process could see them.
		lost    uint64
		anyLost bool
		// gaps counts the snapshots that skipped entries. The last one skipped so many,
		// up to the index gapTo, and lies before the event with the sequence gapAt.
		gaps, skipped, gapTo, gapAt uint64
		// changed is closed at the next event. Nil while nobody waits.
		changed chan struct{}
	}
}

// New returns an empty ring of size events, DefaultSize where size is not
// positive. now is the wall clock, time.Now where nil.
func New(size int, now func() time.Time) *Ring {
	if size <= 0 {
		size = DefaultSize
	}
	if now == nil {
		now = time.Now
	}
	r := &Ring{now: now}
	r.mu.events = make([]Event, size)
	r.mu.next = 1
	return r
}

// Tell has hear told of every event from now on, in order, with the client's name as it
// calls itself: the event's own is made for people, and may stand for several. hear is
// called under the ring's lock: it must be short, and must not use the ring. Call Tell
// before anybody publishes.
func (r *Ring) Tell(hear func(e Event, client string)) { r.hear = hear }

// Publish adds an event. It never blocks on a reader. It sets Sequence, Place
// and, where zero, Time, bounds the texts and escapes control characters.
// After Close it does nothing.
func (r *Ring) Publish(e Event) {
	client := e.Client
	e = e.clean()
	if e.Time.IsZero() {
		e.Time = r.now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return
	}
	slot := &r.mu.events[r.mu.next%uint64(len(r.mu.events))]
	if slot.Sequence != 0 {
		r.mu.lost, r.mu.anyLost = max(r.mu.lost, slot.Place), true
	}
	r.mu.place = max(r.mu.place, e.Index)
	e.Sequence, e.Place = r.mu.next, r.mu.place
	*slot = e
	r.mu.next++
	if r.hear != nil {
		r.hear(e, client)
	}
	r.wakeLocked()
}

// Restored tells the ring that the state up to index came from a snapshot: the
// events of those entries were never seen here. Readers get a *LostError.
func (r *Ring) Restored(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if index == 0 {
		return
	}
	r.mu.lost, r.mu.anyLost = max(r.mu.lost, index), true
	if index > r.mu.place {
		r.mu.gaps++
		r.mu.skipped, r.mu.gapTo, r.mu.gapAt = index-r.mu.place, index, r.mu.next
		r.mu.place = index
		r.wakeLocked()
	}
}

// Close ends every subscription once it has read what is kept. It is
// idempotent.
func (r *Ring) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = true
	r.wakeLocked()
}

func (r *Ring) wakeLocked() {
	if r.mu.changed != nil {
		close(r.mu.changed)
		r.mu.changed = nil
	}
}

// oldestLocked is the sequence of the oldest event kept.
func (r *Ring) oldestLocked() uint64 {
	if size := uint64(len(r.mu.events)); r.mu.next > size {
		return r.mu.next - size
	}
	return 1
}

// Subscribe returns a reader: from nil, of what comes from now on; from 0, of
// all that is kept; from an index, of every event whose place is that index or
// later, or a *CompactedError where one of them is no longer kept.
//
// A reader costs no memory beyond itself and needs no closing.
func (r *Ring) Subscribe(from *uint64) (*Subscription, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Subscription{ring: r, next: r.mu.next, gaps: r.mu.gaps}
	if from == nil {
		return s, nil
	}
	s.next = r.oldestLocked()
	if *from == 0 {
		return s, nil
	}
	if r.mu.anyLost && *from <= r.mu.lost {
		return nil, &CompactedError{From: *from, Oldest: r.mu.lost + 1}
	}
	s.from = *from
	return s, nil
}

func (r *Ring) atLocked(sequence uint64) *Event {
	return &r.mu.events[sequence%uint64(len(r.mu.events))]
}

// Subscription reads a ring. It has one caller at a time.
type Subscription struct {
	ring *Ring
	next uint64
	// from is the lowest place wanted: it may lie ahead, at a node that lags.
	from uint64
	// gaps is how many of the ring's it knows of.
	gaps uint64
}

// atGapLocked reports whether what comes next lies behind entries that were skipped.
func (s *Subscription) atGapLocked() bool {
	return s.gaps != s.ring.mu.gaps && s.next >= s.ring.mu.gapAt
}

// Next waits for the next event. A *LostError says that some were missed; the
// call after it goes on. ErrClosed and the context's error are final.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		e, ok, err := s.TryNext()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-s.changed():
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// TryNext returns the next event if there is one already. Errors are as for
// Next.
func (s *Subscription) TryNext() (e Event, ok bool, err error) {
	r := s.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest := r.oldestLocked(); s.next < oldest {
		lost := oldest - s.next
		s.next = oldest
		return Event{}, false, &LostError{Lost: lost, Resume: r.atLocked(oldest).Place}
	}
	for s.next < r.mu.next || s.atGapLocked() {
		if s.atGapLocked() {
			s.gaps = r.mu.gaps
			if s.from <= r.mu.gapTo {
				return Event{}, false, &LostError{Skipped: r.mu.skipped, Resume: r.mu.gapTo + 1}
			}
			continue
		}
		at := r.atLocked(s.next)
		s.next++
		if at.Place >= s.from {
			return *at, true, nil
		}
	}
	if r.mu.closed {
		return Event{}, false, ErrClosed
	}
	return Event{}, false, nil
}

// changed is closed as soon as TryNext has something to say.
func (s *Subscription) changed() <-chan struct{} {
	r := s.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.next < r.mu.next || s.atGapLocked() || r.mu.closed {
		return closedChan
	}
	if r.mu.changed == nil {
		r.mu.changed = make(chan struct{})
	}
	return r.mu.changed
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
