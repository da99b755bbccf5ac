package queue

import (
	"slices"
	"time"
)

// place is a key of a limit where somebody waits.
type place struct {
	at         Place
	terms      *Terms
	dimensions []Dimension
	// lanes are those of classes in which somebody waits.
	lanes   []*lane
	waiting int
	tokens  sums
}

func (p *place) lane(class string) *lane {
	for _, l := range p.lanes {
		if l.class == class {
			return l
		}
	}
	return nil
}

// configure takes over the terms of its limit. What was known of parts that are full
// holds for parts as they were.
func (p *place) configure(terms *Terms) {
	before := p.dimensions
	p.terms, p.dimensions = terms, terms.dimensions(p.at.Key)
	same := slices.EqualFunc(before, p.dimensions, func(a, b Dimension) bool {
		return a.Name == b.Name && a.Tokens == b.Tokens && a.Per == b.Per && slices.Equal(a.Parts, b.Parts)
	})
	for _, l := range p.lanes {
		l.turns.reweigh(terms)
		if !same {
			clear(l.full)
		}
	}
}

// sums are tokens by dimension. There are few.
type sums []Cost

func (s *sums) add(costs []Cost, times int64) {
	for _, c := range costs {
		i := slices.IndexFunc(*s, func(have Cost) bool { return have.Dimension == c.Dimension })
		if i < 0 {
			i = len(*s)
			*s = append(*s, Cost{Dimension: c.Dimension})
		}
		(*s)[i].Tokens += times * c.Tokens
	}
}

func (s sums) of(dimension string) int64 {
	for _, c := range s {
		if c.Dimension == dimension {
			return c.Tokens
		}
	}
	return 0
}

// lane is what waits of one class at one place.
type lane struct {
	place *place
	class string
	turns turns
	// front are those whose turn has come, in that order: the head, and while it
	// is flying those that were proposed with it.
	front []*Waiter
	// flying is how many of them are; most is the most that one of them asks for,
	// by dimension.
	flying int
	most   sums
	// wait is the first denial of what was flying, woken that something changed
	// meanwhile.
	denied bool
	wait   time.Duration
	woken  bool
	// due is when to look at the head, index the lane's place among the due.
	due   time.Duration
	index int
	// full is since when the class's own part is full while its head waits, by
	// dimension.
	full map[string]time.Duration

	waiting int
	tokens  sums
	served  meter
}

func newLane(p *place, class string, now time.Duration) *lane {
	return &lane{place: p, class: class, turns: newTurns(), index: -1, due: now, served: meter{since: now}}
}

// takeHead gives the turn to the next client. Somebody must be in line.
func (l *lane) takeHead() {
	w := l.turns.choose()
	w.state = heading
	l.front = append(l.front[:0], w)
	clear(l.full)
}

func (l *lane) dropFront(w *Waiter) {
	if len(l.front) > 0 && l.front[0] == w {
		clear(l.full)
	}
	l.front = slices.DeleteFunc(l.front, func(other *Waiter) bool { return other == w })
}

// list appends all who wait in the lane.
func (l *lane) list(all []*Waiter) []*Waiter {
	for _, w := range l.front {
		if w.state != gone {
			all = append(all, w)
		}
	}
	for _, c := range l.turns.active.list {
		for w := c.first; w != nil; w = w.next {
			all = append(all, w)
		}
	}
	return all
}

// Next returns the heads that are due at now and of which nothing is flying,
// from the class listed first at each place on. They are flying from then on.
func (q *Queue) Next(now time.Duration) []*Waiter {
	var heads []*Waiter
	for q.due.len() > 0 && q.due.first().due <= now {
		l := q.due.first()
		q.due.remove(l)
		if len(l.front) == 0 {
			l.takeHead()
		}
		head := l.front[0]
		head.state = flying
		q.expiry.remove(head)
		l.flying, l.denied, l.woken = 1, false, false
		l.most = l.most[:0]
		l.most.add(head.Costs, 1)
		heads = append(heads, head)
	}
	if len(heads) > 1 {
		slices.SortStableFunc(heads, func(a, b *Waiter) int { return a.lane.rank() - b.lane.rank() })
	}
	return heads
}

// rank is the lane's place in the order of borrowing.
func (l *lane) rank() int { return l.place.terms.rank(l.class) }

// rank is the class's place in listed order; one that is not listed any more
// comes last.
func (t *Terms) rank(class string) int {
	if i := slices.Index(t.Classes, class); i >= 0 {
		return i
	}
	return len(t.Classes)
}

// More returns the one whose turn comes after w, the last of its lane that is
// flying, so that it is proposed with it: behind it in one entry. It is flying
// then. It returns nil where nobody is left, where fits says no, or where the
// next could be granted though one before it is denied, and so would overtake it.
func (q *Queue) More(now time.Duration, w *Waiter, fits func(next *Waiter) bool) *Waiter {
	l := w.lane
	if l == nil || l.turns.active.len() == 0 || !w.Sole || len(l.full) > 0 && l.covered(now) {
		return nil
	}
	next := l.turns.active.first().first
	if !next.Sole || !l.follows(next) || !fits(next) {
		return nil
	}
	l.turns.choose()
	next.state = flying
	q.expiry.remove(next)
	l.front = append(l.front, next)
	l.flying++
	for i, c := range next.Costs {
		l.most[i].Tokens = max(l.most[i].Tokens, c.Tokens)
	}
	return next
}

// follows says that w is denied wherever one of those that are flying is: it
// asks for the same dimensions and no less. With Lead it may ask for less,
// where there is no part of the class's own to pay from.
func (l *lane) follows(w *Waiter) bool {
	if len(w.Costs) != len(l.most) {
		return false
	}
	for i, c := range w.Costs {
		if c.Dimension != l.most[i].Dimension || c.Tokens < l.most[i].Tokens && l.hasOwn(c.Dimension) {
			return false
		}
	}
	return true
}

// hasOwn says that there may be a part of the class's own.
func (l *lane) hasOwn(dimension string) bool {
	_, part := l.part(dimension)
	return len(l.place.terms.Classes) > 0 && (part == nil || part.SubBurst > 0)
}

// Lead is how many free tokens w must leave, so that it is not granted where one
// that was proposed before it is denied.
func (w *Waiter) Lead(i int) int64 {
	if w.lane == nil || i >= len(w.lane.most) {
		return 0
	}
	return max(0, w.lane.most[i].Tokens-w.Costs[i].Tokens)
}

// Granted says that w, who was flying, got what it asked for, or that nobody
// knows. It is out of the queue.
func (q *Queue) Granted(now time.Duration, w *Waiter) {
	l := w.lane
	if l == nil || w.state != flying && w.state != gone {
		return
	}
	l.turns.granted(w)
	l.served.count(now, w.Costs)
	l.dropFront(w)
	p := l.place
	q.land(now, l)
	q.drop(now, w)
	if len(p.lanes) > 1 {
		// What was kept for it is not any more.
		q.wake(now, p)
	}
}

// Denied says that w, who was flying, has to wait so much longer, Never where
// only others can help. It stays where it was in the order.
func (q *Queue) Denied(now time.Duration, w *Waiter, wait time.Duration) {
	l := w.lane
	if l == nil || w.state != flying && w.state != gone {
		return
	}
	if !l.denied {
		l.denied, l.wait = true, wait
	}
	if w.state == gone {
		l.dropFront(w)
		l.turns.giveBack(w)
		q.land(now, l)
		q.drop(now, w)
		return
	}
	w.state = back
	q.expiry.push(w)
	q.land(now, l)
}

// land counts one of the lane as not flying any more. With the last one the lane
// has a head again: the first that was denied. The others go back in line.
func (q *Queue) land(now time.Duration, l *lane) {
	l.flying--
	if l.flying > 0 {
		return
	}
	for i := len(l.front) - 1; i >= 1; i-- {
		w := l.front[i]
		w.state = lined
		l.turns.unchoose(w)
	}
	at := now
	if len(l.front) > 0 {
		l.front = slices.Delete(l.front, 1, len(l.front))
		l.front[0].state = heading
		if l.denied && !l.woken {
			at = later(now, l.wait)
			if covered := l.coveredAt(); covered > now {
				at = min(at, covered)
			}
		}
	}
	q.dueAt(l, at)
}
