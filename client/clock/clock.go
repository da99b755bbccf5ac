// Package clock measures by which time a client's leases live.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// tolerance is how far the wall clock may leave the monotonic one before the
// boot-time clock is asked. The two are disciplined alike, so that their
// difference stands still but for steps and suspensions.
const tolerance = time.Millisecond

// unchecked is for how long the wall clock is not looked at again: reading both
// clocks costs twice what one does. A suspension can't hide in it. Whoever suspends
// a machine stops its programs first and starts them last, and the monotonic clock
// runs for far longer than that in between.
const unchecked = 100 * time.Microsecond

// Clock tells how much time has passed since it was made, the time included
// during which the machine was suspended: a machine must not wake up believing
// that its leases are young (T5). The monotonic clock stands still in a
// suspension and the boot-time clock, which does not, costs a system call; so
// that the boot-time clock is read only when the wall clock has moved without
// the monotonic one. A wall clock that somebody sets is found out in that way
// and changes nothing.
//
// Safe for concurrent use; Now allocates nothing and takes no lock.
type Clock struct {
	base time.Time
	wall int64

	// suspended is what the monotonic clock has missed, in nanoseconds.
	suspended atomic.Int64
	// ahead is by how much the wall clock was ahead of the monotonic one when the
	// boot-time clock was last asked, in nanoseconds.
	ahead atomic.Int64
	// checked is up to when the two were last compared, in nanoseconds since base.
	checked atomic.Int64

	// mu is held while the boot-time clock is asked.
	mu       sync.Mutex
	boot     func() (time.Duration, bool)
	bootBase time.Duration
}

// New returns a clock that shows 0 now.
func New() *Clock {
	now := time.Now()
	c := &Clock{base: now, wall: now.UnixNano(), boot: bootTime}
	c.bootBase, _ = c.boot()
	return c
}

// Now is the time since New. It never goes back.
func (c *Clock) Now() time.Duration {
	if elapsed := time.Since(c.base); elapsed-time.Duration(c.checked.Load()) < unchecked {
		return elapsed + time.Duration(c.suspended.Load())
	}
	return c.at(time.Now())
}

// At is when t was or will be on this clock. t has to come from time.Now in
// this process, or to be derived from it.
func (c *Clock) At(t time.Time) time.Duration {
	return t.Sub(c.base) + time.Duration(c.suspended.Load())
}

func (c *Clock) at(now time.Time) time.Duration {
	elapsed := now.Sub(c.base)
	ahead := time.Duration(now.UnixNano()-c.wall) - elapsed
	if off := ahead - time.Duration(c.ahead.Load()); off > tolerance || off < -tolerance {
		c.reconcile(elapsed, ahead)
	}
	c.checked.Store(int64(elapsed))
	return elapsed + time.Duration(c.suspended.Load())
}

// reconcile finds out why the wall clock has left the monotonic one.
func (c *Clock) reconcile(elapsed, ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gained := ahead - time.Duration(c.ahead.Load())
	c.ahead.Store(int64(ahead))
	missed := time.Duration(c.suspended.Load())
	if boot, ok := c.boot(); ok {
		// Read after elapsed was: what passed in between is not a suspension, but to
		// count it twice only ends leases early.
		missed = max(missed, boot-c.bootBase-elapsed)
	} else {
		missed += max(0, gained)
	}
	c.suspended.Store(int64(missed))
}
