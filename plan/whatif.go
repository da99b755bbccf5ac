package plan

import (
	"math/big"
	"slices"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// SecondsMax bounds for how many seconds a cell says what is held.
const SecondsMax = 60

// cellsMax bounds the table.
const cellsMax = 256

// Cell is what happens to tasks that arrive in one moment at a full bucket of a
// size and a rate: each waits until its tokens are there, in order.
type Cell struct {
	// File says that it is the bucket of the file, Whole that it is refilled at all
	// of the provider's rate instead of the target.
	File, Whole bool
	// Capacity is in tasks, Rate in tasks a minute.
	Capacity int64
	Rate     *big.Rat
	// Admitted pass at once and Held wait.
	Admitted, Held int64
	// After is how many still wait 1, 2, 3 … seconds later, until none do, for at most
	// SecondsMax seconds.
	After []int64
	// Empty is the seconds after which none waits. Nil: never.
	Empty *big.Rat
}

// lane is one bucket that a task is charged in, by tasks: how many it holds, and
// how many it is given in a second.
type lane struct{ holds, perSecond *big.Rat }

func laneOf(holds, perMinute *big.Rat) lane {
	return lane{holds, new(big.Rat).Quo(perMinute, ratio(60, 1))}
}

func (q *Question) whatIf(parts []Part, binding int) ([]Cell, error) {
	own, capacity := []lane(nil), int64(TasksMax)
	for _, p := range parts {
		capacity = min(capacity, p.Burst/p.Cost)
		own = append(own, laneOf(ratio(p.Burst, p.Cost), p.AtTarget))
	}
	pace := parts[binding]
	file := Cell{File: true, Capacity: capacity, Rate: pace.AtTarget}
	file.fill(q.Arrivals, own)
	cells := []Cell{file}
	capacities := q.capacities(capacity)
	if n := len(capacities) * max(len(q.Rates), 1); n > cellsMax {
		return nil, wrong("capacities", "", "%d rows, more than %d", n, cellsMax)
	}
	for _, size := range capacities {
		add := func(rate *big.Rat, whole bool) {
			c := Cell{Whole: whole, Capacity: size, Rate: rate}
			c.fill(q.Arrivals, []lane{laneOf(ratio(size, 1), rate)})
			cells = append(cells, c)
		}
		for _, r := range q.Rates {
			add(r.PerMinute(), false)
		}
		if len(q.Rates) > 0 {
			continue
		}
		if q.Capacities != nil || size != capacity {
			add(pace.AtTarget, false)
		}
		if q.Target < bucket.Whole {
			add(pace.Tasks, true)
		}
	}
	return cells, nil
}

// capacities are those that were asked for, or the file's and larger ones up to
// where nobody waits.
func (q *Question) capacities(own int64) []int64 {
	list := q.Capacities
	if list == nil {
		list = []int64{own, own + own/2, 2 * own, q.Arrivals}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(n int64) bool { return n < 1 || n > TasksMax })
}

// fill watches the arrivals from second to second.
func (c *Cell) fill(arrivals int64, lanes []lane) {
	c.Held = held(arrivals, lanes, 0)
	c.Admitted = arrivals - c.Held
	for s, left := int64(1), c.Held; left > 0 && s <= SecondsMax; s++ {
		left = held(arrivals, lanes, s)
		c.After = append(c.After, left)
	}
	c.Empty = new(big.Rat)
	for _, l := range lanes {
		short := new(big.Rat).Sub(ratio(arrivals, 1), l.holds)
		switch {
		case short.Sign() <= 0:
		case l.perSecond.Sign() == 0:
			c.Empty = nil
			return
		case short.Quo(short, l.perSecond).Cmp(c.Empty) > 0:
			c.Empty = short
		}
	}
}

// held is how many tasks the slowest bucket holds back so many seconds after they
// came: those that its burst and its refill do not pay for as a whole. A bucket that
// holds one back is never full, so that nothing of its refill is lost.
func held(arrivals int64, lanes []lane, seconds int64) (most int64) {
	for _, l := range lanes {
		paid := new(big.Rat).Mul(l.perSecond, ratio(seconds, 1))
		paid.Add(paid, l.holds)
		whole := new(big.Int).Quo(paid.Num(), paid.Denom())
		if all := big.NewInt(arrivals); whole.Cmp(all) < 0 {
			most = max(most, arrivals-whole.Int64())
		}
	}
	return most
}
