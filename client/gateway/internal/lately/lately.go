// Package lately is what is for a moment: what a gateway has said, what no limit fits, a
// pause.
package lately

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Seldom says when a line is due that would be there with each request. Safe for concurrent
// use.
type Seldom struct{ last atomic.Int64 }

// Due is true once a minute.
func (s *Seldom) Due(now time.Time) bool {
	last := s.last.Load()
	return now.UnixNano()-last >= int64(time.Minute) && s.last.CompareAndSwap(last, now.UnixNano())
}

const (
	// UnmatchedPause is after how long it is asked once more whether no limit fits: another
	// node has the turn by then.
	UnmatchedPause = 100 * time.Millisecond
	// unmatchedFor is for how long that is believed, of so many kinds of requests.
	unmatchedFor = 10 * time.Second
	unmatchedMax = 1024
)

// Unmatched are kinds of requests that no limit fits, as was said twice. It is safe for
// concurrent use.
type Unmatched struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
}

// Has says whether that was said a moment ago.
func (u *Unmatched) Has(now time.Time, kind string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.until[kind])
}

// Add notes that it was said. Where there are too many, it is asked twice again of all.
func (u *Unmatched) Add(now time.Time, kind string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil || len(u.until) >= unmatchedMax {
		u.until = make(map[string]time.Time)
	}
	u.until[kind] = now.Add(unmatchedFor)
}

// Pause waits d, or until ctx ends; false then.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
