package wire

import (
	"sync"
	"time"
)

const (
	quietFor    = time.Minute
	sourcesMost = 1024
)

// quiet lets one line a source a minute through, for a bounded number of
// sources: a stranger who knocks a thousand times must not fill the disk.
type quiet struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// allows reports whether source may be logged now.
func (q *quiet) allows(now time.Time, source string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last, ok := q.last[source]; ok && now.Sub(last) < quietFor {
		return false
	}
	if len(q.last) >= sourcesMost {
		for s, last := range q.last {
			if now.Sub(last) >= quietFor {
				delete(q.last, s)
			}
		}
		if len(q.last) >= sourcesMost {
			return false
		}
	}
	if q.last == nil {
		q.last = make(map[string]time.Time)
	}
	q.last[source] = now
	return true
}
