// Package tally counts what the nodes report of one client.
//
// Every process of every node reports cumulatively, slice by slice of the window
// of the client's retry budget, and the maximum counts (T29). What the budget and
// its warnings need is kept for that window. Throttled answers are shown for an
// hour: what a report adds to them is added to the minute of its slice too, so
// that an hour is sixty figures whatever the window is.
//
// The package is pure: no clock, no lock, no goroutine.
package tally

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/window"
)

const (
	// MaxCount bounds a reported count, so that the sum over a window of all
	// processes fits.
	MaxCount = int64(1) << 40
	// MaxFault bounds the text of a fault in bytes.
	MaxFault = 64
	// maxSources bounds the processes that a client's counts come from: those of
	// all nodes, and of their restarts within one window.
	maxSources = 32
	// sumMost: when a retry budget gets longer slices, counts are added up.
	sumMost = MaxCount * window.Slices
	// Minute is the length of the slices of the hour.
	Minute = time.Minute
	// hour is how many of them there are.
	hour = 60
	// never is later than any time there is.
	never = bucket.Instant(1<<63 - 1)
)

// Count is what happened: Total requests were admitted, and Retries among them;
// Throttled answers came from a provider; Denied is refusals that asked to wait,
// and Early those after which the client did not.
type Count struct{ Total, Retries, Throttled, Denied, Early int64 }

// Max is the larger of each.
func (c Count) Max(o Count) Count {
	return Count{
		max(c.Total, o.Total), max(c.Retries, o.Retries), max(c.Throttled, o.Throttled),
		max(c.Denied, o.Denied), max(c.Early, o.Early),
	}
}

// Min is the smaller of each.
func (c Count) Min(o Count) Count {
	return Count{
		min(c.Total, o.Total), min(c.Retries, o.Retries), min(c.Throttled, o.Throttled),
		min(c.Denied, o.Denied), min(c.Early, o.Early),
	}
}

// Plus is the sum of each.
func (c Count) Plus(o Count) Count {
	return Count{
		c.Total + o.Total, c.Retries + o.Retries, c.Throttled + o.Throttled, c.Denied + o.Denied, c.Early + o.Early,
	}
}

// Minus is the difference of each.
func (c Count) Minus(o Count) Count {
	return Count{
		c.Total - o.Total, c.Retries - o.Retries, c.Throttled - o.Throttled, c.Denied - o.Denied, c.Early - o.Early,
	}
}

// Fault is an error of a client and how often it was reported. The zero Fault is
// none.
type Fault struct {
	Text  string
	Times int64
}

// Process is one process of one node.
type Process struct {
	Node string
	// Boot is drawn at random when the process starts.
	Boot uint64
}

func (p Process) compare(o Process) int {
	return cmp.Or(cmp.Compare(p.Node, o.Node), cmp.Compare(p.Boot, o.Boot))
}

// Report is what one process says of one slice, cumulatively. Fault is the
// commonest one in the window so far.
type Report struct {
	Slice int64
	Count Count
	Fault Fault
}

// Counts says whether the report counts when the time is now: it does not where it is
// out of the window, far ahead of the time, or empty.
func (r Report) Counts(now bucket.Instant, length time.Duration) bool {
	return window.InReach(window.At(int64(now), length), r.Slice) && r.Slice >= 0 && r.Count != Count{}
}

// Tally is the counts of one client. Copying one shares them; use Clone.
type Tally struct {
	length time.Duration
	// sources are in the order of their processes.
	sources []source
	// minutes are the throttled answers of the last hour, in order.
	minutes []minute
}

// source is one process. A count that arrives twice, late or out of order does no
// harm.
type source struct {
	Process
	// slices are in order, no slice twice.
	slices []slice
	// fault is the one that was reported for the slice faultAt, the newest of all.
	fault   Fault
	faultAt int64
}

type slice struct {
	at int64
	Count
}

type minute struct{ at, throttled int64 }

// New returns a tally of slices of that length.
func New(length time.Duration) Tally { return Tally{length: length} }

// Length is the length of a slice.
func (t *Tally) Length() time.Duration { return t.length }

// Clone copies the tally.
func (t *Tally) Clone() Tally {
	fresh := *t
	fresh.sources, fresh.minutes = slices.Clone(t.sources), slices.Clone(t.minutes)
	for i := range fresh.sources {
		fresh.sources[i].slices = slices.Clone(t.sources[i].slices)
	}
	return fresh
}

// Add takes a report that counts.
func (t *Tally) Add(now bucket.Instant, from Process, r Report) {
	at := window.At(int64(now), t.length)
	i, found := t.find(from)
	if !found {
		t.makeRoom(at)
		i, _ = t.find(from)
		t.sources = slices.Insert(t.sources, i, source{Process: from})
	}
	s := &t.sources[i]
	s.drop(at)
	one := s.open(r.Slice)
	after := one.Max(r.Count)
	t.throttle(now, r.Slice, after.Throttled-one.Throttled)
	one.Count = after
	s.learn(r)
}

// learn keeps the fault of the newest slice, and of one slice the commonest.
func (s *source) learn(r Report) {
	if r.Fault.Times <= 0 {
		return
	}
	newer := cmp.Or(cmp.Compare(r.Slice, s.faultAt), cmp.Compare(r.Fault.Times, s.fault.Times),
		cmp.Compare(s.fault.Text, r.Fault.Text))
	if s.fault.Times == 0 || newer > 0 {
		s.fault, s.faultAt = r.Fault, r.Slice
	}
}

// throttle adds to the minute in which a slice begins. One that is ahead of the time
// counts in the present minute: an hour has no more of them than sixty. It is only
// what the slice has more now that is added, so that a repetition adds nothing.
func (t *Tally) throttle(now bucket.Instant, at, throttled int64) {
	if throttled <= 0 {
		return
	}
	present := window.At(int64(now), Minute)
	m, first := min(window.At(at*int64(t.length), Minute), present), present-hour
	t.minutes = slices.DeleteFunc(t.minutes, func(old minute) bool { return old.at <= first })
	if m <= first {
		return
	}
	i, found := slices.BinarySearchFunc(t.minutes, m, func(one minute, m int64) int { return cmp.Compare(one.at, m) })
	if !found {
		t.minutes = slices.Insert(t.minutes, i, minute{at: m})
	}
	t.minutes[i].throttled = min(t.minutes[i].throttled+throttled, sumMost)
}

// find is the index of a process, or where it would have to be.
func (t *Tally) find(p Process) (int, bool) {
	return slices.BinarySearchFunc(t.sources, p, func(s source, p Process) int { return s.compare(p) })
}

// makeRoom makes room for one more source: those whose window is over go, and at
// the bound the one that was silent the longest.
func (t *Tally) makeRoom(at int64) {
	t.dropOld(at)
	if len(t.sources) < maxSources {
		return
	}
	silent := 0
	for i := range t.sources {
		if t.sources[i].newest() < t.sources[silent].newest() {
			silent = i
		}
	}
	t.sources = slices.Delete(t.sources, silent, silent+1)
}

// Drop forgets what has left the window.
func (t *Tally) Drop(now bucket.Instant) { t.dropOld(window.At(int64(now), t.length)) }

func (t *Tally) dropOld(at int64) {
	for i := range t.sources {
		t.sources[i].drop(at)
	}
	t.sources = slices.DeleteFunc(t.sources, func(s source) bool { return len(s.slices) == 0 })
}

// drop forgets the slices that have left the window, in place: the array is as
// large as the window ever was full, no larger.
func (s *source) drop(at int64) {
	if gone := s.search(at - window.Slices + 1); gone == len(s.slices) {
		s.slices = nil
	} else if gone > 0 {
		s.slices = slices.Delete(s.slices, 0, gone)
	}
}

// search is the index of a slice, or where it would have to be.
func (s *source) search(at int64) int {
	i, _ := slices.BinarySearchFunc(s.slices, at, func(one slice, at int64) int { return cmp.Compare(one.at, at) })
	return i
}

// open finds the place of a slice and makes one if need be.
func (s *source) open(at int64) *slice {
	i := s.search(at)
	if i == len(s.slices) || s.slices[i].at != at {
		s.slices = slices.Insert(s.slices, i, slice{at: at})
	}
	return &s.slices[i]
}

// newest is the last slice with a count.
func (s *source) newest() int64 {
	if len(s.slices) == 0 {
		return -window.Slices
	}
	return s.slices[len(s.slices)-1].at
}

// Reslice counts in slices of another length. The counts so far keep their sums, as
// far as sums are kept, and, within a slice, their time; what is further ahead of it
// than a report may be comes as near.
func (t *Tally) Reslice(now bucket.Instant, length time.Duration) {
	last := window.At(int64(now), length) + window.Ahead
	moved := func(at int64) int64 { return min(window.At(at*int64(t.length), length), last) }
	for i := range t.sources {
		s := &t.sources[i]
		old := s.slices
		s.slices = nil
		for _, one := range old {
			to := s.open(moved(one.at))
			to.Count = to.Plus(one.Count).Min(Count{sumMost, sumMost, sumMost, sumMost, sumMost})
		}
		s.faultAt = moved(s.faultAt)
	}
	t.length = length
}
