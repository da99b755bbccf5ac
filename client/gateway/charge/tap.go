package charge

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
)

const (
	// warmFor is for how long a limiter that has paid is taken to hold something: half of
	// the life of a lease that says nothing else, when it gives back what is not used. One
	// that holds nothing after all asks, and its caller waits for that.
	warmFor = 2 * time.Second
	// busyFor is over which Config.Busy counts: the time that a block is to last.
	busyFor = 4 * time.Second
	// restMin and restMax are for how long a limiter that refused is left alone, twice as
	// long each time.
	restMin = 50 * time.Millisecond
	restMax = 2 * time.Second
)

// bucket is what is charged.
type bucket struct{ limit, key, dimension string }

// tap is a bucket that plans of one class are paid from, with its limiter where blocks of
// it are held. Safe for concurrent use.
type tap struct {
	bucket
	class   string
	limiter atomic.Pointer[client.Limiter]
	// live counts permits that have not ended: a limiter that has some is not closed.
	live atomic.Int64
	// used is when somebody last wanted something of it. gone: it was forgotten, and plans
	// that have it are over.
	used atomic.Int64
	gone atomic.Bool
	// warm is until when the limiter is taken to hold something, rest until when it is left
	// alone, and pause for how long that was.
	warm, rest, pause atomic.Int64
	// since and wanted count calls that found it cold.
	since, wanted atomic.Int64
	// filling: somebody is asking for a first block, of at least need tokens.
	filling atomic.Bool
	need    atomic.Int64
}

// isWarm says whether the limiter is taken to hold something.
func (t *tap) isWarm(now time.Duration) bool {
	return int64(now) < t.warm.Load() && int64(now) >= t.rest.Load() && t.limiter.Load() != nil
}

// isWanted counts a call that finds it cold, and says whether there are so many of them
// that a block is worth its while.
func (t *tap) isWanted(now time.Duration, busy int) bool {
	since := t.since.Load()
	if int64(now)-since > int64(busyFor) && t.since.CompareAndSwap(since, int64(now)) {
		t.wanted.Store(0)
	}
	return t.wanted.Add(1) >= int64(busy) && int64(now) >= t.rest.Load()
}

// take takes tokens from what is held.
func (t *tap) take(now time.Duration, n int64) (client.Permit, bool) {
	t.live.Add(1)
	l := t.limiter.Load()
	if l == nil {
		t.live.Add(-1)
		return client.Permit{}, false
	}
	permit, ok := l.Take(int(n))
	if !ok {
		t.live.Add(-1)
	}
	t.found(now, ok && !permit.Local())
	return permit, ok
}

// settle ends a permit.
func (t *tap) settle(permit client.Permit, used int64) {
	permit.Settle(int(max(0, min(used, amountMax))))
	t.live.Add(-1)
}

// found takes in whether the limiter had something. One that had nothing is left alone
// for a while, and one that goes on to have something for twice that time is as good as
// any.
func (t *tap) found(now time.Duration, some bool) {
	pause := t.pause.Load()
	if !some {
		pause = min(max(2*pause, int64(restMin)), int64(restMax))
		t.pause.Store(pause)
		t.rest.Store(max(t.rest.Load(), int64(now)+pause))
		t.warm.Store(0)
		return
	}
	if pause > 0 && int64(now) > t.rest.Load()+2*pause {
		t.pause.Store(0)
	}
	// Not each time, as touch.
	if until := int64(now + warmFor); until-t.warm.Load() > int64(100*time.Millisecond) {
		t.warm.Store(until)
	}
}

// taps are all of them. It is safe for concurrent use.
type taps struct {
	most int

	mu sync.Mutex
	// byBucket are those of each, one for a class, and n is how many there are.
	byBucket map[bucket][]*tap
	n        int
	// open is how many have a limiter.
	open atomic.Int64
}

// perLimiter is how many taps there may be for each limiter: those that are wanted too
// rarely for one need little.
const perLimiter = 16

func newTaps(limiters int) *taps {
	return &taps{most: limiters * perLimiter, byBucket: make(map[bucket][]*tap)}
}

// of is the tap of a bucket and a class, nil where there is no room.
func (s *taps) of(now time.Duration, b bucket, class string) *tap {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.byBucket[b] {
		if t.class == class {
			t.used.Store(int64(now))
			return t
		}
	}
	if s.n >= s.most {
		return nil
	}
	t := &tap{bucket: b, class: class}
	t.used.Store(int64(now))
	s.byBucket[b] = append(s.byBucket[b], t)
	s.n++
	return t
}

// rest has the limiters of a bucket left alone until then: what they hold goes back.
func (s *taps) rest(b bucket, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.byBucket[b] {
		t.rest.Store(max(t.rest.Load(), int64(until)))
	}
}

// sweep forgets those without a limiter that were not used since, and returns those whose
// limiter was not.
func (s *taps) sweep(since time.Duration) (idle []*tap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b, list := range s.byBucket {
		kept := slices.DeleteFunc(list, func(t *tap) bool {
			switch {
			case t.used.Load() >= int64(since) || t.filling.Load():
				return false
			case t.limiter.Load() != nil:
				idle = append(idle, t)
				return false
			}
			t.gone.Store(true)
			s.n--
			return true
		})
		if s.byBucket[b] = kept; len(kept) == 0 {
			delete(s.byBucket, b)
		}
	}
	return idle
}

// all are those with a limiter.
func (s *taps) all() (open []*tap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.byBucket {
		for _, t := range list {
			if t.limiter.Load() != nil {
				open = append(open, t)
			}
		}
	}
	return open
}
