package circuit

import (
	"container/list"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Board holds circuits. It is safe for concurrent use. now is time since some moment, the
// same for all methods.
type Board struct {
	config Config

	mu struct {
		sync.Mutex
		circuits map[Key]*circuit
		// byAge has the circuit that was used last first.
		byAge *list.List
		// turns and probes number what circuits do, over all of them, so that a circuit that
		// was forgotten and comes back is not taken for what it was.
		turns, probes uint64
		stats         Stats
	}
}

// New returns a Board. The error names every field that is out of range.
func New(c Config) (*Board, error) {
	c.defaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("circuit configuration: %w", err)
	}
	b := &Board{config: c}
	b.mu.circuits, b.mu.byAge = make(map[Key]*circuit), list.New()
	return b, nil
}

// Stats are what a Board has done since it was made, and what it holds.
type Stats struct {
	// Opened counts openings, those learned from others included, and Closed closings.
	Opened, Closed uint64
	// Probes counts probes, and Lost those that did not end in time.
	Probes, Lost uint64
	// Shed and Deferred count requests that Forward refused.
	Shed, Deferred uint64
	// Untracked counts failures that found no room: their circuit stays closed.
	Untracked uint64
	// Open is how many circuits are not closed, and Keys how many there are.
	Open, Keys int
}

// Stats are the figures now.
func (b *Board) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.mu.stats
	s.Keys = len(b.mu.circuits)
	for _, c := range b.mu.circuits {
		if c.open {
			s.Open++
		}
	}
	return s
}

// Learn takes in what another gateway said of a key, for whoever hears it by other means
// than Config.Shared. A notice never makes an open circuit close sooner than it would.
func (b *Board) Learn(now time.Duration, key Key, n Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learnLocked(now, key, n)
}

func (b *Board) learnLocked(now time.Duration, key Key, n Notice) {
	c := b.mu.circuits[key]
	wait := min(max(n.Wait, 0), b.config.HintMax)
	switch {
	case n.Closed:
		if c != nil && c.open && now >= c.until {
			c.close(now)
			b.mu.stats.Closed++
		}
	case c != nil && c.open && (wait == 0 || now < c.until):
		c.until = max(c.until, now+wait)
	default:
		if c = b.trackLocked(now, key); c != nil {
			b.openLocked(c, now, wait)
		}
	}
}

// openLocked opens a circuit for a time and somewhat longer.
func (b *Board) openLocked(c *circuit, now, wait time.Duration) {
	if wait > 0 {
		wait += min(max(b.config.Jitter(b.config.JitterMax), 0), b.config.JitterMax)
	}
	c.openAt(now + wait)
	b.mu.stats.Opened++
}

// trackLocked is the circuit of a key, a new one where there is none; nil without room.
func (b *Board) trackLocked(now time.Duration, key Key) *circuit {
	if c := b.mu.circuits[key]; c != nil {
		b.useLocked(now, c)
		return c
	}
	b.forgetLocked(now)
	if len(b.mu.circuits) >= b.config.Keys {
		b.mu.stats.Untracked++
		return nil
	}
	// The first turn of a place is above all that it had before.
	b.mu.turns += 1 << 32
	c := &circuit{
		key:  Key{strings.Clone(key.Tenant), strings.Clone(key.Deployment), key.All},
		turn: b.mu.turns, began: now, used: now,
	}
	b.mu.circuits[c.key] = c
	c.byAge = b.mu.byAge.PushFront(c)
	return c
}

func (b *Board) useLocked(now time.Duration, c *circuit) {
	c.used = max(c.used, now)
	b.mu.byAge.MoveToFront(c.byAge)
}

// looksMax is how many circuits are looked at to find one that can go.
const looksMax = 16

// forgetLocked lets idle circuits go, and one that is closed where there is no room.
func (b *Board) forgetLocked(now time.Duration) {
	for range looksMax {
		last := b.mu.byAge.Back()
		if last == nil {
			return
		}
		c := last.Value.(*circuit)
		full := len(b.mu.circuits) >= b.config.Keys
		switch {
		case c.idle(now, b.config.Idle), full && !c.open:
			b.mu.byAge.Remove(last)
			delete(b.mu.circuits, c.key)
		case full:
			// It is open and stays. The next one may be another.
			b.mu.byAge.MoveToFront(last)
		default:
			return
		}
	}
}

// Left is how long a key lets nothing pass, 0 where it may. While a probe is on its way
// that is a guess of a second at most.
func (b *Board) Left(now time.Duration, key Key) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.mu.circuits[key]; c != nil {
		left, _ := c.left(now)
		return left
	}
	return 0
}
