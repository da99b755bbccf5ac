package real

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/upstream"
)

// clock goes fast, and stands at 0 until it is started.
type clock struct {
	upstream.Clock
	zero atomic.Int64
}

func newClock(pace int) *clock {
	c := &clock{Clock: upstream.Speed(pace)}
	c.zero.Store(math.MaxInt64)
	return c
}

// start makes it now.
func (c *clock) start() { c.zero.Store(int64(c.Clock.Now())) }

// Now is the time since it was started.
func (c *clock) Now() time.Duration { return max(0, c.Clock.Now()-time.Duration(c.zero.Load())) }
