// Package lately is what a gateway remembers for a moment: what it has said, what no limit
// fits, and what further tries may cost.
package lately

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/fsm/retry"
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

// Balance pays for the further tries of all requests to one deployment, so that a provider
// that fails for everybody is not sent everything three times. It is safe for concurrent
// use.
type Balance struct {
	mu     sync.Mutex
	tokens retry.Tokens // guarded by mu
}

// Pays says whether one more try is paid for, and pays.
func (b *Balance) Pays(now time.Duration, rule retry.TokenRule) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.Retry(int64(now), rule)
}

// Refund adds what a success is worth.
func (b *Balance) Refund(rule retry.TokenRule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens.Success(rule)
}
