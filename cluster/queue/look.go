package queue

import (
	"math"
	"slices"
	"time"
)

// Busy reports whether anybody of the class waits at the place: then nobody of
// that class may pass.
func (q *Queue) Busy(at Place, class string) bool {
	p := q.places[at]
	if p == nil {
		return false
	}
	l := p.lane(class)
	return l != nil && l.waiting > 0
}

// Wanted reports whether anybody waits at the place, of whatever class.
func (q *Queue) Wanted(at Place) bool {
	p := q.places[at]
	return p != nil && p.waiting > 0
}

// Head is the one of the class that nothing overtakes at the place, nil where
// nobody waits or the next has not been chosen.
func (q *Queue) Head(at Place, class string) *Waiter {
	if p := q.places[at]; p != nil {
		if l := p.lane(class); l != nil && len(l.front) > 0 {
			return l.front[0]
		}
	}
	return nil
}

// Status is what one more of the class that asks for the costs would find at
// the place.
func (q *Queue) Status(now time.Duration, at Place, class string, costs []Cost) Status {
	p := q.places[at]
	if p == nil {
		return Status{Position: 1}
	}
	l := p.lane(class)
	if l == nil {
		return Status{Position: 1}
	}
	return Status{Position: int64(l.waiting) + 1, ETA: l.eta(now, costs)}
}

// Clears is about how long it takes until those who wait at the place have left as
// much as the cost to one more of another class: until all of classes listed before
// have been served, and the heads of those listed after.
func (q *Queue) Clears(now time.Duration, at Place, class string, cost Cost) time.Duration {
	p := q.places[at]
	if p == nil {
		return 0
	}
	longest, rank := time.Duration(0), p.terms.rank(class)
	for _, l := range p.lanes {
		switch {
		case l.class == class || l.waiting == 0:
		case l.rank() < rank:
			longest = max(longest, l.eta(now, []Cost{cost}))
		default:
			longest = max(longest, l.headWait(now))
		}
	}
	return longest
}

// eta is the estimated wait of one behind all others in the lane: that of the
// head, and what is asked for after it at the pace of the lane.
func (l *lane) eta(now time.Duration, costs []Cost) time.Duration {
	head := l.headWait(now)
	if head == Never {
		return Never
	}
	longest := head
	for _, c := range costs {
		ahead := l.tokens.of(c.Dimension)
		if len(l.front) > 0 {
			ahead -= sums(l.front[0].Costs).of(c.Dimension)
		}
		rate := l.served.rate(now, c, l.pace(c.Dimension))
		if rate <= 0 {
			continue
		}
		wait := float64(ahead+c.Tokens) / rate
		if wait >= float64(Never-head) {
			return Never
		}
		longest = max(longest, head+time.Duration(wait))
	}
	return longest
}

// headWait is how long until the head is looked at again.
func (l *lane) headWait(now time.Duration) time.Duration {
	switch {
	case l.flying > 0:
		return 0
	case l.due == Never:
		return Never
	}
	return max(0, l.due-now)
}

// pace is what the limit's numbers say of the lane, in tokens a nanosecond: all
// that comes but what other classes that wait are guaranteed, and no more than
// its own guarantee while a class listed before waits.
func (l *lane) pace(dimension string) float64 {
	dimensions := l.place.dimensions
	i := slices.IndexFunc(dimensions, func(d Dimension) bool { return d.Name == dimension })
	if i < 0 || dimensions[i].Per <= 0 {
		return 0
	}
	d := &dimensions[i]
	part := int64(10_000)
	for _, other := range l.place.lanes {
		rank := other.rank()
		switch {
		case other == l || rank >= len(d.Parts):
		case rank < l.rank() && l.rank() < len(d.Parts):
			part = min(part, d.Parts[l.rank()].Share)
		default:
			part -= d.Parts[rank].Share
		}
	}
	return float64(d.Tokens) / float64(d.Per) * float64(max(0, part)) / 10_000
}

// ClassState is what waits in one class of a place.
type ClassState struct {
	// Place is where, set by Busiest only.
	Place   Place
	Class   string
	Waiting int64
	// Tokens is what they ask for together, by dimension.
	Tokens []Cost
	// Oldest is how long the head has waited, ETA how much longer it will.
	Oldest, ETA time.Duration
	// Clients are the first 20 in the order of their turns.
	Clients []ClientState
}

// ClientState is what waits of one client.
type ClientState struct {
	Client          string
	Waiting, Weight int64
}

// clientsShown bounds the clients of a ClassState.
const clientsShown = 20

// State shows what waits at a place, in the order of the classes.
func (q *Queue) State(now time.Duration, at Place) []ClassState {
	p := q.places[at]
	if p == nil {
		return nil
	}
	lanes := slices.Clone(p.lanes)
	slices.SortStableFunc(lanes, func(a, b *lane) int { return a.rank() - b.rank() })
	states := make([]ClassState, 0, len(lanes))
	for _, l := range lanes {
		if l.waiting > 0 {
			states = append(states, l.state(now))
		}
	}
	return states
}

func (l *lane) state(now time.Duration) ClassState {
	s := ClassState{
		Class: l.class, Waiting: int64(l.waiting), Tokens: slices.Clone(l.tokens), ETA: l.headWait(now),
	}
	s.Tokens = slices.DeleteFunc(s.Tokens, func(c Cost) bool { return c.Tokens == 0 })
	byTurn := slices.Clone(l.turns.active.list)
	slices.SortFunc(byTurn, func(a, b *client) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	front := make(map[string]int64)
	var order []string
	for _, w := range l.front {
		if w.state == gone {
			continue
		}
		if front[w.Client] == 0 {
			order = append(order, w.Client)
		}
		front[w.Client]++
	}
	if len(l.front) > 0 {
		s.Oldest = now - l.front[0].Arrived
	}
	for _, name := range order {
		s.add(name, front[name], l.place.terms.weight(name), 0)
	}
	for _, c := range byTurn {
		s.add(c.name, front[c.name], c.weight, int64(c.waiting))
	}
	return s
}

// add shows a client: so many of it are at the front and so many in line.
func (s *ClassState) add(name string, front, weight, lined int64) {
	i := slices.IndexFunc(s.Clients, func(c ClientState) bool { return c.Client == name })
	switch {
	case i >= 0:
		s.Clients[i].Waiting += lined
	case len(s.Clients) < clientsShown:
		s.Clients = append(s.Clients, ClientState{Client: name, Waiting: front + lined, Weight: weight})
	}
}

// Depth is what waits in one class of a limit, over all its keys.
type Depth struct {
	Limit, Class string
	Waiting      int64
	// Oldest is how long the one that came first has waited.
	Oldest time.Duration
	// Tokens is what they ask for together, by dimension.
	Tokens []Cost
}

// Depths are those of every limit and class where somebody waits, in no order.
func (q *Queue) Depths(now time.Duration) []Depth {
	type name struct{ limit, class string }
	depths := make(map[name]*Depth)
	for at, p := range q.places {
		for _, l := range p.lanes {
			d := depths[name{at.Limit, l.class}]
			if d == nil {
				d = &Depth{Limit: at.Limit, Class: l.class}
				depths[name{at.Limit, l.class}] = d
			}
			d.Waiting += int64(l.waiting)
			d.Oldest = max(d.Oldest, now-l.oldest(now))
			d.Tokens = addCosts(d.Tokens, l.tokens)
		}
	}
	list := make([]Depth, 0, len(depths))
	for _, d := range depths {
		if d.Waiting > 0 {
			list = append(list, *d)
		}
	}
	return list
}

// addCosts adds more to a list with each dimension once. A sum of many keys stays
// where it fits.
func addCosts(list []Cost, more sums) []Cost {
	for _, c := range more {
		i := slices.IndexFunc(list, func(one Cost) bool { return one.Dimension == c.Dimension })
		switch {
		case c.Tokens == 0:
		case i < 0:
			list = append(list, c)
		default:
			list[i].Tokens += min(c.Tokens, math.MaxInt64-list[i].Tokens)
		}
	}
	return list
}

// oldest is when the one that came first came.
func (l *lane) oldest(now time.Duration) time.Duration {
	first := now
	for _, w := range l.front {
		if w.state != gone {
			first = min(first, w.Arrived)
		}
	}
	for _, c := range l.turns.active.list {
		first = min(first, c.first.Arrived)
	}
	return first
}
