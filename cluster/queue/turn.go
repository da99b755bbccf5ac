package queue

import (
	"math"
	"math/bits"
	"time"
)

// mark is a point on a lane's own scale of work: tokens divided by weight, with
// twenty bits behind the point. Two words, because tokens go up to 2^53.
type mark struct{ hi, lo uint64 }

func (m mark) plus(n mark) mark {
	lo, carry := bits.Add64(m.lo, n.lo, 0)
	return mark{m.hi + n.hi + carry, lo}
}

// minus is m less n, at least zero.
func (m mark) minus(n mark) mark {
	if m.less(n) {
		return mark{}
	}
	lo, borrow := bits.Sub64(m.lo, n.lo, 0)
	return mark{m.hi - n.hi - borrow, lo}
}

func (m mark) less(n mark) bool { return m.hi < n.hi || m.hi == n.hi && m.lo < n.lo }

// fraction is the bits of a mark behind the point.
const fraction = 20

// workOf is how far one waiter of that cost takes its client.
func workOf(cost, weight int64) mark {
	hi, lo := bits.Mul64(uint64(cost), 1<<fraction)
	w := uint64(max(1, weight))
	quotient, rest := hi/w, hi%w
	lo, _ = bits.Div64(rest, lo, w)
	return mark{quotient, lo}
}

// client is one client in one lane.
type client struct {
	name   string
	weight int64
	// at is where the client's next waiter starts. The client whose next waiter
	// starts first has the turn.
	at mark
	// first and last are its waiters whose turn has not come, in order of arrival.
	first, last *Waiter
	waiting     int
	// turn is its place among those with waiters, idle among those without.
	turn, idle int
}

// before orders clients by turn, and those with the same by arrival.
func (c *client) before(d *client) bool {
	if c.at != d.at {
		return c.at.less(d.at)
	}
	return c.first.before(d.first)
}

// before orders waiters by arrival.
func (w *Waiter) before(v *Waiter) bool {
	if w.Arrived != v.Arrived {
		return w.Arrived < v.Arrived
	}
	return w.seq < v.seq
}

// insert puts w in by arrival. It mostly comes last: only one that waited at
// another place before, or at another leader, can be older.
func (c *client) insert(w *Waiter) {
	after := c.last
	for after != nil && w.before(after) {
		after = after.prev
	}
	c.link(w, after)
}

// putBack puts w in by arrival where it mostly comes first.
func (c *client) putBack(w *Waiter) {
	var after *Waiter
	for next := c.first; next != nil && next.before(w); next = next.next {
		after = next
	}
	c.link(w, after)
}

// link puts w behind after, or first where that is nil.
func (c *client) link(w, after *Waiter) {
	w.client, w.prev = c, after
	if after == nil {
		w.next, c.first = c.first, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		c.last = w
	} else {
		w.next.prev = w
	}
	c.waiting++
}

func (c *client) unlink(w *Waiter) {
	if w.prev == nil {
		c.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		c.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	c.waiting--
}

// turns decides who is next among the clients of a lane: the one that has had
// least for its weight (start-time fair queueing). Like deficit round robin it
// keeps each within one request of its share, but it needs no quantum, which
// would have to be as large as the largest request, and a choice can be taken
// back exactly.
type turns struct {
	clients map[string]*client
	active  heap[*client]
	// idle are clients without waiters who have had more than the lane has come
	// to: one that asks for a little each time must not begin anew each time.
	idle heap[*client]
	// passed is how far the lane has come: where a newcomer starts. It moves on
	// with all that is granted, so that a stream of newcomers, who all start
	// there, can't keep those out for ever who have had their share before.
	passed mark
	// weight is that of all active clients.
	weight int64
}

// idleMax bounds the clients that a lane remembers. The one that is forgotten is
// the one that is least ahead.
const idleMax = 4096

func newTurns() turns {
	return turns{
		clients: make(map[string]*client),
		active: heap[*client]{
			before: (*client).before, place: func(c *client) *int { return &c.turn },
		},
		idle: heap[*client]{
			before: func(c, d *client) bool { return c.at.less(d.at) },
			place:  func(c *client) *int { return &c.idle },
		},
	}
}

// add puts w in line, at the back of its client's or where it belongs by age.
func (t *turns) add(w *Waiter, weight int64) {
	c := t.clients[w.Client]
	if c == nil {
		c = &client{name: w.Client, at: t.passed, turn: -1, idle: -1}
		t.clients[w.Client] = c
	}
	if c.first == nil {
		c.weight = weight
	}
	t.enter(c, func() { c.insert(w) })
}

// reweigh takes over weights, also of clients that wait all the time. What they have
// had counts as it did.
func (t *turns) reweigh(terms *Terms) {
	t.weight = 0
	for _, c := range t.active.list {
		c.weight = terms.weight(c.name)
		t.weight += c.weight
	}
}

// enter changes the waiters of c, which has at least one afterwards.
func (t *turns) enter(c *client, change func()) {
	if t.active.has(c) {
		change()
		t.active.fix(c)
		return
	}
	t.idle.remove(c)
	if c.at.less(t.passed) {
		c.at = t.passed
	}
	change()
	t.weight += c.weight
	t.active.push(c)
}

// leave lets c go where it has no waiters left.
func (t *turns) leave(c *client) {
	if c.first != nil {
		t.active.fix(c)
		return
	}
	if t.active.has(c) {
		t.active.remove(c)
		t.weight -= c.weight
	}
	if !t.idle.has(c) {
		t.idle.push(c)
	}
	t.forget()
}

// forget drops clients that a newcomer would not differ from.
func (t *turns) forget() {
	for t.idle.len() > 0 {
		c := t.idle.first()
		if t.idle.len() <= idleMax && t.passed.less(c.at) {
			return
		}
		t.idle.remove(c)
		delete(t.clients, c.name)
	}
}

// remove takes w out of line.
func (t *turns) remove(w *Waiter) {
	c := w.client
	c.unlink(w)
	t.leave(c)
}

// choose takes the next out of line. There must be one.
func (t *turns) choose() *Waiter {
	c := t.active.first()
	w := c.first
	w.start, w.work = c.at, workOf(w.Costs[0].Tokens, c.weight)
	c.at = c.at.plus(w.work)
	t.remove(w)
	return w
}

// unchoose puts w back in line.
func (t *turns) unchoose(w *Waiter) {
	t.giveBack(w)
	c := w.client
	if t.clients[c.name] != c {
		// It was forgotten meanwhile.
		t.add(w, c.weight)
		return
	}
	t.enter(c, func() { c.putBack(w) })
}

// giveBack undoes what choosing w cost its client.
func (t *turns) giveBack(w *Waiter) {
	c := w.client
	c.at = c.at.minus(w.work)
	switch {
	case t.active.has(c):
		t.active.fix(c)
	case t.idle.has(c):
		t.idle.fix(c)
	}
}

// granted moves the lane on by what w was granted.
func (t *turns) granted(w *Waiter) {
	if t.passed.less(w.start) {
		t.passed = w.start
	}
	weight := t.weight
	if !t.active.has(w.client) {
		weight += w.client.weight
	}
	t.passed = t.passed.plus(workOf(w.Costs[0].Tokens, weight))
	t.forget()
}

// meter measures how fast a lane is served.
type meter struct {
	since  time.Duration
	tokens map[string]float64
	// last is when the latest was served: what comes for the head since then is not
	// counted yet.
	last time.Duration
	// halved is how often what was has been forgotten by half. The limit's numbers
	// are forgotten like everything else, or a lane that gets a part of them would be
	// told too short a wait for ever (S3-39).
	halved int
}

const (
	// meterPrior is for how many requests the limit's numbers stand in, until the
	// lane's own pace says as much.
	meterPrior = 5
	// meterSpan is after how long what was is forgotten by half.
	meterSpan = 5 * time.Minute
)

func (m *meter) count(now time.Duration, costs []Cost) {
	if m.tokens == nil {
		m.tokens = make(map[string]float64, len(costs))
	}
	m.last = now
	for _, c := range costs {
		m.tokens[c.Dimension] += float64(c.Tokens)
	}
	if past := now - m.since; past > meterSpan {
		m.since += past / 2
		m.halved++
		for d := range m.tokens {
			m.tokens[d] /= 2
		}
	}
}

// rate is tokens a nanosecond for requests of such a cost, where the limit's
// numbers say prior.
func (m *meter) rate(now time.Duration, c Cost, prior float64) float64 {
	served, elapsed := m.tokens[c.Dimension], float64(now-m.since)
	if prior > 0 {
		stands := math.Ldexp(meterPrior*float64(c.Tokens), -m.halved)
		served += stands
		elapsed += stands/prior - min(float64(now-max(m.since, m.last)), float64(c.Tokens)/prior)
	}
	if elapsed <= 0 {
		return 0
	}
	return served / elapsed
}
