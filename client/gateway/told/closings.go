package told

import (
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/gateway/circuit"
)

// closings is what the authority holds closed, as far as was heard. It has a lock of its
// own: every request asks it.
type closings struct {
	most int

	mu    sync.Mutex
	byKey map[circuit.Key]closing
}

type closing struct {
	until time.Duration
	// given: the circuit knows.
	given bool
}

func newClosings(most int) *closings {
	return &closings{most: most, byKey: make(map[circuit.Key]closing)}
}

// hear notes until when a key is closed.
func (c *closings) hear(now time.Duration, key circuit.Key, until time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byKey[key]
	if until <= now || ok && until <= known.until {
		return
	}
	if !ok {
		if len(c.byKey) >= c.most && !c.makeRoomLocked(now) {
			return
		}
		key.Tenant, key.Deployment = strings.Clone(key.Tenant), strings.Clone(key.Deployment)
	}
	c.byKey[key] = closing{until: until}
}

// looksMax is how many keys are looked at to find one that is open again.
const looksMax = 16

func (c *closings) makeRoomLocked(now time.Duration) (made bool) {
	looks := 0
	for key, known := range c.byKey {
		if known.until <= now {
			delete(c.byKey, key)
			made = true
		}
		if looks++; looks == looksMax {
			break
		}
	}
	return made
}

// learn is for how much longer a key is closed, where the circuit was not told that
// before.
func (c *closings) learn(now time.Duration, key circuit.Key) (left time.Duration, news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byKey[key]
	if !ok {
		return 0, false
	}
	if known.until <= now {
		delete(c.byKey, key)
		return 0, false
	}
	if known.given {
		return 0, false
	}
	known.given = true
	c.byKey[key] = known
	return known.until - now, true
}

// until is until when a key is known to be closed, 0 where it is not.
func (c *closings) until(key circuit.Key) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key].until
}
