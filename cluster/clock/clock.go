// Package clock estimates the authority clock on one node.
package clock

import (
	"sync"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// Clock is this node's estimate of the authority clock: the only place on the
// write path that reads time.
//
// A follower's estimate is the time of the last stamped entry it applied plus
// what has passed since on its own clock, so it may step back when the next
// entry says less (T37, T38: taking a maximum here saves up drift and spends it
// at an election). A leader counts on alone from its estimate at the end of its
// Barrier; its own applies don't pull it back, or time would stand still while
// entries are always in flight (T39). Wall clocks take no part (T1).
//
// Safe for concurrent use.
type Clock struct {
	elapsed func() time.Duration

	mu struct {
		sync.Mutex
		// applied is what a follower counts from.
		applied anchor
		// lead is what the leader counts from, while leading is true.
		lead    anchor
		leading bool
	}
}

// anchor is a moment on both clocks.
type anchor struct {
	now bucket.Instant
	at  time.Duration
}

// on returns the authority time when the own clock shows at.
func (a anchor) on(at time.Duration) bucket.Instant {
	return a.now + bucket.Instant(max(0, at-a.at))
}

// New returns the clock of a node that has applied nothing. elapsed is the
// node's own clock, which never goes backwards; nil: the boot-time clock.
func New(elapsed func() time.Duration) *Clock {
	if elapsed == nil {
		elapsed = bootTime()
	}
	c := &Clock{elapsed: elapsed}
	c.mu.applied.at = elapsed()
	return c
}

// SetApplied anchors to the authority time after an applied entry or a restored
// snapshot.
func (c *Clock) SetApplied(now bucket.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.applied = anchor{now: now, at: c.elapsed()}
}

// Lead makes the estimate count on alone. To be called when the Barrier has
// passed and not before: earlier the node may not have applied what its
// predecessor stamped (T3).
func (c *Clock) Lead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.elapsed()
	c.mu.lead = anchor{now: c.mu.applied.on(at), at: at}
	c.mu.leading = true
}

// Follow goes back to the estimate of a follower.
func (c *Clock) Follow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.leading = false
}

// Estimate is the authority time as far as this node can tell. A leader stamps
// entries with it.
func (c *Clock) Estimate() bucket.Instant {
	// Read without the lock: everybody who decides comes by here.
	at := c.elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.leading {
		return c.mu.lead.on(at)
	}
	return c.mu.applied.on(at)
}

// Elapsed is the node's own clock.
func (c *Clock) Elapsed() time.Duration { return c.elapsed() }
