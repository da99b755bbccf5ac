package gateway

import (
	"sync"
	"time"
)

const (
	// unmatchedPause is after how long it is asked once more whether no limit fits: another
	// node has the turn by then.
	unmatchedPause = 100 * time.Millisecond
	// unmatchedFor is for how long that is believed, of so many kinds of requests.
	unmatchedFor = 10 * time.Second
	unmatchedMax = 1024
)

// unmatched are kinds of requests that no limit fits, as was said twice. It is safe for
// concurrent use.
type unmatched struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
}

// has says whether that was said a moment ago.
func (u *unmatched) has(now time.Time, kind string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.until[kind])
}

// add notes that it was said. Where there are too many, it is asked twice again of all.
func (u *unmatched) add(now time.Time, kind string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil || len(u.until) >= unmatchedMax {
		u.until = make(map[string]time.Time)
	}
	u.until[kind] = now.Add(unmatchedFor)
}
