// Package window counts events over sliding windows.
//
// A window is cut into Slices equal slices, numbered from the beginning of
// authority time; only slices in which something happened take memory. An event
// leaves the window when its slice does, that is up to one slice before its own
// age reaches the length of the window and never after it (S1-21: with a window
// of five minutes and slices of a second, an event of second 0 is counted up to
// the end of second 299 and gone at +300 s).
//
// The package is pure: no clock, no lock, no goroutine.
package window

import (
	"math"
	"slices"
	"sort"
	"time"
)

// Slices is how many slices a window has.
const Slices = 300

// Length is the length of one slice of a window, at least a nanosecond. The
// window should be a multiple of Slices nanoseconds.
func Length(window time.Duration) time.Duration { return max(window/Slices, 1) }

// At is the number of the slice in which now lies, now in nanoseconds of
// authority time.
func At(now int64, length time.Duration) int64 {
	slice := now / int64(length)
	if now%int64(length) < 0 {
		slice--
	}
	return slice
}

// Ahead is how many slices later than the time a count may be reported for.
const Ahead = Slices

// InReach says whether a count that is reported for a slice counts when the time is in
// slice now. What is older than the window does not, and neither does what is more
// than a window ahead: clocks of nodes differ a little, and a wrong one must not keep
// a count for ever.
//
// A count that is ahead stays in its own slice. Moved to the present it would be in
// another slice each time that the same report comes, and be counted each time
// (T29).
func InReach(now, slice int64) bool { return slice > now-Slices && slice-Ahead <= now }

// Counts are the events of one client, slice by slice. The zero Counts is
// empty. Copying one shares its slices; use Clone.
type Counts struct {
	// counts ascend by slice, no slice twice.
	counts []count
}

// count is what happened in one slice.
type count struct {
	slice, total, retries int64
}

// Add adds to the counts of a slice, neither of them negative. A count that
// doesn't fit stays at math.MaxInt64, here and in Sum: one that overflowed would
// give a client its budget back.
func (c *Counts) Add(slice, total, retries int64) {
	at := c.open(slice)
	at.total = add(at.total, total)
	at.retries = add(at.retries, retries)
}

// SetMax raises the counts of a slice to these where they are higher, each by
// itself. Cumulative reports that are lost, repeated or overtaken so do no harm
// (T29).
func (c *Counts) SetMax(slice, total, retries int64) {
	at := c.open(slice)
	at.total = max(at.total, total)
	at.retries = max(at.retries, retries)
}

// Sum is what lies in the window when the time is in slice now. Later slices
// count too: the estimate of time may step back. See Place.
func (c *Counts) Sum(now int64) (total, retries int64) {
	for _, one := range c.counts[c.first(now):] {
		total = add(total, one.total)
		retries = add(retries, one.retries)
	}
	return total, retries
}

// Slice is the counts of one slice.
func (c *Counts) Slice(slice int64) (total, retries int64) {
	i := c.search(slice)
	if i == len(c.counts) || c.counts[i].slice != slice {
		return 0, 0
	}
	return c.counts[i].total, c.counts[i].retries
}

// Drop forgets the slices that have left the window.
func (c *Counts) Drop(now int64) {
	gone := c.first(now)
	if gone == 0 {
		return
	}
	if gone == len(c.counts) {
		c.counts = nil
		return
	}
	// In place: the array is as large as the window ever was full, no larger.
	c.counts = slices.Delete(c.counts, 0, gone)
}

// Len is the number of slices that take memory.
func (c *Counts) Len() int { return len(c.counts) }

// Walk calls visit for every slice that takes memory, the oldest first.
func (c *Counts) Walk(visit func(slice, total, retries int64)) {
	for _, one := range c.counts {
		visit(one.slice, one.total, one.retries)
	}
}

// Clone copies the counts.
func (c *Counts) Clone() Counts { return Counts{counts: slices.Clone(c.counts)} }

// add is a + b, or math.MaxInt64 where that does not fit.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// first is the index of the first slice that is in the window.
func (c *Counts) first(now int64) int { return c.search(now - Slices + 1) }

// search is the index of slice, or where it would have to be.
func (c *Counts) search(slice int64) int {
	return sort.Search(len(c.counts), func(i int) bool { return c.counts[i].slice >= slice })
}

// open finds the place of a slice and makes one if need be.
func (c *Counts) open(slice int64) *count {
	i := c.search(slice)
	if i == len(c.counts) || c.counts[i].slice != slice {
		c.counts = slices.Insert(c.counts, i, count{slice: slice})
	}
	return &c.counts[i]
}
