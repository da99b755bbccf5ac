package queue

import (
	"math"
	"time"
)

// Keep is how many free tokens of a dimension an acquire of the class must leave
// at the place at now, for those who wait there in other classes.
//
// While a class listed before waits, it is all of them: free tokens are borrowed
// in listed order. While one listed after waits, it is what has overflowed from
// that class's full sub-bucket since its head waits, as far as the head needs
// it. Without that, classes listed before could borrow every free token for
// ever, and a head that asks for more than its sub-bucket holds would never be
// paid, though its class uses nothing (T48). A head for which enough is kept may
// take it, whoever waits.
func (q *Queue) Keep(now time.Duration, at Place, class, dimension string) int64 {
	p := q.places[at]
	if p == nil {
		return 0
	}
	rank := p.terms.rank(class)
	own := p.lane(class)
	covered := own != nil && own.covered(now)
	kept := int64(0)
	for _, l := range p.lanes {
		switch {
		case l == own || l.waiting == 0:
		case l.rank() > rank:
			kept += l.kept(now, dimension)
		case !covered:
			return All
		}
	}
	return min(kept, All)
}

// OwnFull says that the part of its own of w's class is full from that moment on,
// or will be if nobody takes from it. w is a head. The first word counts as long
// as it is the head.
func (q *Queue) OwnFull(w *Waiter, dimension string, from time.Duration) {
	l := w.lane
	if l == nil || len(l.front) == 0 || l.front[0] != w {
		return
	}
	if l.full == nil {
		l.full = make(map[string]time.Duration)
	}
	if _, known := l.full[dimension]; !known {
		l.full[dimension] = from
	}
}

// FillsIn is how long the guaranteed refill of w's class takes for so many tokens;
// ok is false where it has none.
func (q *Queue) FillsIn(w *Waiter, dimension string, tokens int64) (wait time.Duration, ok bool) {
	if w.lane == nil {
		return 0, false
	}
	d, part := w.lane.part(dimension)
	if d == nil || part.Share == 0 || d.Tokens == 0 {
		return 0, false
	}
	return d.takes(part, tokens)
}

// takes is how long a part of the rate takes for so many tokens.
func (d *Dimension) takes(p *Part, tokens int64) (wait time.Duration, ok bool) {
	perToken := float64(d.Per) * 10_000 / (float64(d.Tokens) * float64(p.Share))
	nanos := perToken * float64(max(0, tokens))
	if nanos >= float64(Never) {
		return Never, false
	}
	return time.Duration(nanos), true
}

// part is what the lane's class is guaranteed of a dimension, nil where nothing
// is known of it.
func (l *lane) part(dimension string) (*Dimension, *Part) {
	for i := range l.place.dimensions {
		d := &l.place.dimensions[i]
		if rank := l.rank(); d.Name == dimension && rank < len(d.Parts) {
			return d, &d.Parts[rank]
		}
	}
	return nil, nil
}

// needs is what the lane's head needs beside a full part of its own.
func (l *lane) needs(dimension string) int64 {
	if len(l.front) == 0 {
		return 0
	}
	_, part := l.part(dimension)
	if part == nil {
		return 0
	}
	return max(0, sums(l.front[0].Costs).of(dimension)-part.SubBurst)
}

// kept is what has overflowed for the lane's head, at most what it needs.
func (l *lane) kept(now time.Duration, dimension string) int64 {
	from, known := l.full[dimension]
	needs := l.needs(dimension)
	if !known || needs == 0 || now <= from {
		return 0
	}
	d, part := l.part(dimension)
	overflowed := float64(d.Tokens) * float64(part.Share) / 10_000 / float64(d.Per) * float64(now-from)
	if overflowed >= float64(needs) {
		return needs
	}
	// A part of a token counts as one: what is short of it can't be kept.
	return int64(math.Ceil(overflowed))
}

// covered says that as much is kept for the head as it needs.
func (l *lane) covered(now time.Duration) bool { return l.coveredAt() <= now }

// coveredAt is when that will be.
func (l *lane) coveredAt() time.Duration {
	if len(l.front) == 0 {
		return Never
	}
	at := time.Duration(0)
	for _, c := range l.front[0].Costs {
		d, part := l.part(c.Dimension)
		from, known := l.full[c.Dimension]
		if !known || part == nil {
			return Never
		}
		at = max(at, from)
		needs := l.needs(c.Dimension)
		if needs == 0 {
			continue
		}
		if part.Share == 0 || d.Tokens == 0 {
			return Never
		}
		wait, ok := d.takes(part, needs)
		if !ok {
			return Never
		}
		at = max(at, later(from, wait+1))
	}
	return at
}
