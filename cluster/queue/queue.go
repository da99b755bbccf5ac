package queue

import (
	"math"
	"slices"
	"time"
)

// All as a number of free tokens to leave means all of them: only the class's
// own part may be taken.
const All = int64(1) << 53

// Never is a moment that does not come, or a wait that does not end by itself.
const Never = time.Duration(math.MaxInt64)

// Config bounds a Queue, whatever limits say.
type Config struct {
	// Max is how many may wait, ClientMax how many of one client. 0: any number.
	Max, ClientMax int
}

// Place is where acquires wait: a key of a limit.
type Place struct{ Limit, Key string }

// Cost is what a waiter asks for of one dimension at its place.
type Cost struct {
	Dimension string
	// Tokens are 1 to 2^53.
	Tokens int64
}

// Waiter is one acquire that waits. The caller fills in the exported fields and
// changes them only while it is in no queue.
type Waiter struct {
	Place Place
	// Class is a name of the limit's Terms.
	Class  string
	Client string
	// Costs has at least one element; the first decides whose turn it is.
	Costs []Cost
	// Sole says that it asks for nothing at other places.
	Sole bool
	// Arrived is when it came, Until when it will have waited long enough.
	Arrived, Until time.Duration
	// Owner is the caller's own.
	Owner any

	seq    uint64
	lane   *lane
	client *client
	// prev and next are those of its client that wait around it.
	prev, next *Waiter
	// start is where its turn began on the lane's scale, work how far it went.
	start, work mark
	// expiry is its place among those that expire.
	expiry int
	state  state
}

// state is how far a Waiter has come.
type state int

const (
	// Zero is one that is in no queue.
	_ state = iota
	// lined: in its client's line.
	lined
	// heading: the head of its lane.
	heading
	// flying: proposed, its fate not known.
	flying
	// back: denied, while others that were proposed with it are still flying.
	back
	// gone: canceled while it was flying.
	gone
)

// Status is where a waiter stands, or one more would.
type Status struct {
	// Position counts those before it in its class and itself: 1 is the head.
	Position int64
	// ETA is the estimated wait.
	ETA time.Duration
}

// Queue orders what waits at all places. It is for one goroutine at a time.
type Queue struct {
	config Config
	terms  map[string]*Terms
	places map[Place]*place
	// due are the lanes of which nothing is flying, expiry the waiters that are
	// not flying.
	due    heap[*lane]
	expiry heap[*Waiter]
	// clients counts the waiters of each client.
	clients map[string]int
	waiting int
	seq     uint64
}

// New returns an empty queue. Configure says where anybody may wait.
func New(c Config) *Queue {
	return &Queue{
		config: c, terms: make(map[string]*Terms),
		places: make(map[Place]*place), clients: make(map[string]int),
		due: heap[*lane]{
			before: func(a, b *lane) bool { return a.due < b.due },
			place:  func(l *lane) *int { return &l.index },
		},
		expiry: heap[*Waiter]{
			before: func(a, b *Waiter) bool { return a.Until < b.Until },
			place:  func(w *Waiter) *int { return &w.expiry },
		},
	}
}

// noTerms are those of a limit that nobody told of: nobody waits.
var noTerms = &Terms{}

// Configure replaces the terms of all limits. The maps and lists in it must not
// be changed afterwards. Who waits goes on waiting, and is due: what it waits
// for may have changed.
func (q *Queue) Configure(now time.Duration, limits map[string]*Terms) {
	q.terms = limits
	for at, p := range q.places {
		p.configure(q.termsOf(at.Limit))
		q.wake(now, p)
	}
}

func (q *Queue) termsOf(limit string) *Terms {
	if t := q.terms[limit]; t != nil {
		return t
	}
	return noTerms
}

// Len is how many wait, those that are flying with them.
func (q *Queue) Len() int { return q.waiting }

// Push lets w wait, who was denied at its place and told to wait so long; that
// counts where nobody of its class waits there yet. ok is false where the place,
// the client or the queue has as many as it may have; the status then says what
// one more would find. w.Until is brought forward to what the limit allows.
func (q *Queue) Push(now time.Duration, w *Waiter, wait time.Duration) (status Status, ok bool) {
	terms := q.termsOf(w.Place.Limit)
	status = q.Status(now, w.Place, w.Class, w.Costs)
	if !q.hasRoom(w, terms) {
		return status, false
	}
	if terms.MaxWait > 0 {
		w.Until = min(w.Until, later(w.Arrived, terms.MaxWait))
	}
	p := q.places[w.Place]
	if p == nil {
		p = &place{at: w.Place, terms: terms, dimensions: terms.dimensions(w.Place.Key)}
		q.places[w.Place] = p
	}
	l := p.lane(w.Class)
	if l == nil {
		l = newLane(p, w.Class, now)
		p.lanes = append(p.lanes, l)
	}
	q.seq++
	w.seq, w.lane, w.expiry = q.seq, l, -1
	l.turns.add(w, terms.weight(w.Client))
	w.state = lined
	q.count(w, 1)
	q.expiry.push(w)
	switch {
	case l.waiting == 1:
		l.takeHead()
		status.ETA = wait
		q.dueAt(l, later(now, wait))
	case len(l.front) > 0 && l.front[0].state == heading && w.before(l.front[0]):
		// It has waited for longer, at another leader or at another place.
		l.front[0].state = lined
		l.turns.unchoose(l.front[0])
		l.takeHead()
		q.dueAt(l, now)
	}
	return status, true
}

// later is at plus wait, as far as moments go.
func later(at, wait time.Duration) time.Duration {
	if wait > Never-max(0, at) {
		return Never
	}
	return at + wait
}

func (q *Queue) hasRoom(w *Waiter, terms *Terms) bool {
	if q.config.Max > 0 && q.waiting >= q.config.Max ||
		q.config.ClientMax > 0 && q.clients[w.Client] >= q.config.ClientMax || terms.Max < 1 {
		return false
	}
	p := q.places[w.Place]
	if p != nil && int64(p.waiting) >= terms.Max {
		return false
	}
	if terms.MaxTokens == 0 {
		return true
	}
	return !slices.ContainsFunc(w.Costs, func(c Cost) bool {
		asked := int64(0)
		if p != nil {
			asked = p.tokens.of(c.Dimension)
		}
		return c.Tokens > terms.MaxTokens-asked
	})
}

// count adds w to what is counted, or takes it off.
func (q *Queue) count(w *Waiter, n int) {
	q.waiting += n
	if q.clients[w.Client] += n; q.clients[w.Client] == 0 {
		delete(q.clients, w.Client)
	}
	l := w.lane
	l.waiting += n
	l.place.waiting += n
	l.tokens.add(w.Costs, int64(n))
	l.place.tokens.add(w.Costs, int64(n))
}

// drop forgets w, who is in no line and not flying any more, and its lane when
// it was the last.
func (q *Queue) drop(now time.Duration, w *Waiter) {
	l := w.lane
	q.count(w, -1)
	q.expiry.remove(w)
	w.state, w.lane, w.client = 0, nil, nil
	switch {
	case l.waiting == 0 && l.flying == 0:
		q.due.remove(l)
		p := l.place
		p.lanes = slices.DeleteFunc(p.lanes, func(other *lane) bool { return other == l })
		if len(p.lanes) == 0 {
			delete(q.places, p.at)
			return
		}
		// What was kept for it, or for which others had to stand back, is free.
		q.wake(now, p)
	case l.flying == 0 && len(l.front) == 0:
		q.dueAt(l, now)
	}
}

// dueAt sets when the lane's head should be looked at.
func (q *Queue) dueAt(l *lane, at time.Duration) {
	if l.flying > 0 || l.waiting == 0 {
		q.due.remove(l)
		return
	}
	l.due = at
	if q.due.has(l) {
		q.due.fix(l)
		return
	}
	q.due.push(l)
}

// Cancel takes w out of the queue. It reports false where w is flying: it may
// have been granted, and leaves with Granted or Denied.
func (q *Queue) Cancel(now time.Duration, w *Waiter) bool {
	switch w.state {
	case lined:
		w.lane.turns.remove(w)
	case heading, back:
		w.lane.dropFront(w)
		w.lane.turns.giveBack(w)
	case flying:
		w.state = gone
		return false
	default:
		return w.state != gone
	}
	q.drop(now, w)
	return true
}

// Waits reports whether w is in the queue.
func (q *Queue) Waits(w *Waiter) bool { return w.state != 0 && w.state != gone }

// Expire takes those out who have waited long enough at now, the first first.
// Those that are flying are left until their fate is known.
func (q *Queue) Expire(now time.Duration) []*Waiter {
	var over []*Waiter
	for q.expiry.len() > 0 && q.expiry.first().Until <= now {
		w := q.expiry.first()
		over = append(over, w)
		q.Cancel(now, w)
	}
	return over
}

// NextDue is when Next or Expire have something to return; ok is false where
// nobody waits for that.
func (q *Queue) NextDue() (at time.Duration, ok bool) {
	at = Never
	if q.due.len() > 0 {
		at, ok = q.due.first().due, true
	}
	if q.expiry.len() > 0 {
		at, ok = min(at, q.expiry.first().Until), true
	}
	return at, ok
}

// Wake makes the heads at a place due: something came back, or has changed.
func (q *Queue) Wake(now time.Duration, at Place) {
	if p := q.places[at]; p != nil {
		q.wake(now, p)
	}
}

// WakeLimit is Wake for every key of a limit.
func (q *Queue) WakeLimit(now time.Duration, limit string) {
	for at, p := range q.places {
		if at.Limit == limit {
			q.wake(now, p)
		}
	}
}

func (q *Queue) wake(now time.Duration, p *place) {
	for _, l := range p.lanes {
		if l.flying == 0 {
			q.dueAt(l, min(l.due, now))
			continue
		}
		l.woken = true
	}
}

// Drain empties the queue and returns who waited, in order of arrival; those
// that are flying with them.
func (q *Queue) Drain() []*Waiter {
	var all []*Waiter
	for _, p := range q.places {
		for _, l := range p.lanes {
			all = l.list(all)
			for _, w := range l.front {
				// Also who is gone while it flies: its fate must not bring the lane back.
				w.state, w.lane, w.client = 0, nil, nil
			}
		}
	}
	slices.SortFunc(all, func(a, b *Waiter) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	for _, w := range all {
		w.state, w.lane, w.client, w.prev, w.next = 0, nil, nil, nil, nil
	}
	terms := q.terms
	*q = *New(q.config)
	q.terms = terms
	return all
}
