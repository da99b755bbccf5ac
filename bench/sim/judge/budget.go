package judge

import (
	"slices"
	"sort"
	"time"
)

// budget checks G12 for a client of which every request is a retry: in every window
// the fleet admits at most what the rule allows and each node's part of it. So it
// is within the window that a refusal ends, too.
type budget struct {
	judge  *Judge
	window time.Duration
	// most is what may be admitted in a window, least is what is never refused.
	most, least int
	// part is what a process of a node may admit that nobody hears of any more.
	part int
	// admitted are the requests that were admitted and granted or of which nobody
	// knows, in the order of authority time; open those that have no fate yet.
	admitted []decided
	open     map[string]decided
	// lost are the times at which a process ended.
	lost []time.Duration
	// full is when the rule, and not a part of it, refused last, in real time.
	full time.Duration
}

// decided is when a node let a request through, in real and in authority time.
type decided struct{ real, stamp time.Duration }

// Budget watches over a retry budget: its window, what the rule lets through of
// retries alone, and how many nodes there are, at least and at most.
func (j *Judge) Budget(window time.Duration, headroom, least, most int) {
	j.budget.window, j.budget.least = window, headroom-1
	j.budget.part = (headroom + least - 1) / least
	j.budget.most = headroom + most*j.budget.part
}

// AdmittedRetry takes a request that a node let through; stamp is the authority time
// that it took.
func (j *Judge) AdmittedRetry(now, stamp time.Duration, id string) {
	j.budget.open[id] = decided{now, stamp}
}

// FinishedRetry says what became of it: recorded is true where it was granted or
// nobody knows.
func (j *Judge) FinishedRetry(id string, recorded bool) {
	b := &j.budget
	at, ok := b.open[id]
	delete(b.open, id)
	if ok && recorded {
		b.note(at)
	}
}

// Restarted takes the end of a node's process, which has forgotten what it had not
// reported.
func (j *Judge) Restarted(now time.Duration) { j.budget.lost = append(j.budget.lost, now) }

// note counts what is in one window both in real time and in authority time as each
// node took it to be: one that lags counts what it admits where the others have been
// before.
func (b *budget) note(at decided) {
	i := sort.Search(len(b.admitted), func(i int) bool { return b.admitted[i].stamp > at.stamp })
	b.admitted = slices.Insert(b.admitted, i, at)
	// A slice of the window is a three hundredth; the window that the nodes see may
	// be shorter by one.
	width := b.window - b.window/100
	for first := range b.admitted[:i+1] {
		if b.admitted[first].stamp+width < at.stamp {
			continue
		}
		end := b.admitted[first].stamp + width
		last := sort.Search(len(b.admitted), func(i int) bool { return b.admitted[i].stamp > end })
		n := 0
		for _, one := range b.admitted[first:last] {
			if one.real > at.real-width && one.real <= at.real {
				n++
			}
		}
		bound := b.most + b.part*b.ended(at.real-2*b.window, at.real)
		if n > bound {
			b.judge.Complain("G12", "%d retries were admitted from %v to %v, at most %d may be", n, b.admitted[first].stamp,
				end, bound)
		}
		return
	}
}

// ended is how many processes ended in an interval.
func (b *budget) ended(from, to time.Duration) (n int) {
	for _, at := range b.lost {
		if at >= from && at <= to {
			n++
		}
	}
	return n
}

// since counts what was admitted from a moment of authority time on, with what may
// still be.
func (b *budget) since(from time.Duration) (n int) {
	for _, one := range b.admitted {
		if one.stamp >= from {
			n++
		}
	}
	// The order does not matter: they are counted.
	for _, at := range b.open {
		if at.stamp >= from {
			n++
		}
	}
	return n
}

// stampSlack is how far apart two nodes' estimates of authority time may be.
const stampSlack = 2 * time.Second

// RefusedRetry takes a refusal at a real and an authority time; full says that it is the
// rule's, not that of a node's part.
func (j *Judge) RefusedRetry(now, stamp time.Duration, node string, full bool) {
	b := &j.budget
	if !full {
		return
	}
	b.full = now
	if n := b.since(stamp - b.window - stampSlack); n < b.least {
		j.Complain("G12", "%s refuses a client of which %d requests were admitted in %v, the rule refuses none below %d",
			node, n, b.window+stampSlack, b.least)
	}
}

// CountedRetries takes what a replica counts in the window when it has applied index:
// never more than there were.
func (j *Judge) CountedRetries(stamp time.Duration, total int64, index uint64) {
	b := &j.budget
	if n := b.since(stamp - b.window - stampSlack); total > int64(n) {
		j.Complain("G12", "index %d: %d requests are counted, %d were admitted in %v", index, total, n,
			b.window+stampSlack)
	}
}

// Exhausted is when the rule itself refused last, and not only a part of it: then all
// of the headroom was used (T49).
func (j *Judge) Exhausted() time.Duration { return j.budget.full }
