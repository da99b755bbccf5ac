// Package patience remembers how long callers have been willing to wait lately.
package patience

import (
	"sync"
	"time"
)

// window is for how long a caller is remembered, at least; at most twice as long.
const window = 10 * time.Second

// Longest is the longest wait that a caller of the last 10 to 20 s would have put
// up with. Whoever answers later than that is away for all of them; whoever is
// sooner serves some. The zero value is ready. Safe for concurrent use.
type Longest struct {
	mu sync.Mutex
	// began is when the window now began; now and before are the longest in it and
	// in the one before.
	began       time.Time
	now, before time.Duration
}

// Note takes in a caller who waits for d at most.
func (l *Longest) Note(at time.Time, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotateLocked(at)
	l.now = max(l.now, d)
}

// Of is the longest at at, 0 where there was no caller lately.
func (l *Longest) Of(at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotateLocked(at)
	return max(l.now, l.before)
}

func (l *Longest) rotateLocked(at time.Time) {
	switch age := at.Sub(l.began); {
	case age >= 2*window:
		l.began, l.now, l.before = at, 0, 0
	case age >= window:
		l.began, l.now, l.before = at, 0, l.now
	}
}
