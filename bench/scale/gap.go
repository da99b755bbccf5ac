package scale

import (
	"context"
	"sync/atomic"
	"time"
)

// gaps finds the longest time between two grants of a measured part, whoever got them.
// Callers use it at the same time.
type gaps struct {
	length time.Duration
	// from is when the part begins, in nanoseconds since zero, which lies before
	// everything; 0: it has not begun.
	from, last, longest atomic.Int64
	zero                time.Time
}

func newGaps(length time.Duration) *gaps {
	return &gaps{length: length, zero: time.Now().Add(-time.Second)}
}

// began is told when the measured part begins.
func (g *gaps) began(_ context.Context, from time.Time) {
	at := int64(from.Sub(g.zero))
	g.last.Store(at)
	g.from.Store(at)
}

// grant notes one.
func (g *gaps) grant(ended time.Time) {
	from, at := g.from.Load(), int64(ended.Sub(g.zero))
	if from == 0 || at < from || at >= from+int64(g.length) {
		return
	}
	g.note(at - g.last.Swap(at))
}

func (g *gaps) note(gap int64) {
	for {
		longest := g.longest.Load()
		if gap <= longest || g.longest.CompareAndSwap(longest, gap) {
			return
		}
	}
}

// end is the longest, the time after the last grant included.
func (g *gaps) end() time.Duration {
	g.note(g.from.Load() + int64(g.length) - g.last.Load())
	return time.Duration(g.longest.Load())
}
