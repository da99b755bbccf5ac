package circuit

import "time"

// Outcome is how a try ended.
type Outcome uint8

// The outcomes.
const (
	// Other: nothing about limits or load, such as a 400, a 500, or a client that went
	// away. It neither opens nor closes a circuit.
	Other Outcome = iota
	// Succeeded: the provider did the work.
	Succeeded
	// Throttled: 429, the tenant has sent too much.
	Throttled
	// Overloaded: the deployment can't do more for anybody, 503 or 529.
	Overloaded
)

// tenants is which of a call's circuits is the tenant's; the other one is the deployment's.
const tenants = 0

// Done notes how a try ended at now, with the wait that the provider asked for, 0 where
// it did not. Only the first call counts.
func (t *Try) Done(now time.Duration, o Outcome, hint time.Duration) {
	if t.done {
		return
	}
	t.done = true
	if o == Throttled {
		t.call.throttled++
	}
	// A probe that succeeds closes nothing that another gateway has opened meanwhile.
	t.call.learn(now)
	for i := range t.call.keys {
		if n, tell := t.end(now, i, o, hint); tell && t.call.board.config.Shared != nil {
			t.call.board.config.Shared.Publish(now, t.call.keys[i], n)
		}
	}
}

// end notes it at one of the two circuits. tell: the others are to know.
func (t *Try) end(now time.Duration, i int, o Outcome, hint time.Duration) (n Notice, tell bool) {
	b := t.call.board
	b.mu.Lock()
	defer b.mu.Unlock()
	failed := o == failure(t.call.keys[i])
	c := b.concernedLocked(now, t.call.keys[i], failed)
	if c == nil {
		return Notice{}, false
	}
	// A circuit that did not exist was closed: its first turn is as good.
	current := t.turns[i] == c.turn || t.turns[i] == 0 && !c.open
	if t.probes[i] != 0 && t.probes[i] == c.probe {
		c.probe = 0
		// What was lost closes nothing: another gateway may have been told no since.
		if current && (failed || now < c.lost) {
			return b.probedLocked(now, c, o, hint)
		}
	}
	if !failed && o != Succeeded {
		return Notice{}, false
	}
	if c.open {
		if failed {
			c.wait(now + min(hint, b.config.HintMax))
		}
		return Notice{}, false
	}
	if current {
		c.count(now, b.config.Window, failed)
	}
	if failed && (t.often(i) || c.exceeds(b.config.Least, b.config.FractionBP)) {
		return b.failedLocked(now, c, hint), true
	}
	return Notice{}, false
}

// concernedLocked is the circuit that hears of an outcome: only what has failed has one.
func (b *Board) concernedLocked(now time.Duration, key Key, failed bool) *circuit {
	if failed {
		return b.trackLocked(now, key)
	}
	return b.mu.circuits[key]
}

// failure is the outcome that speaks against a key.
func failure(key Key) Outcome {
	if key.All {
		return Overloaded
	}
	return Throttled
}

// often says whether its call alone opens the circuit.
func (t *Try) often(i int) bool {
	most := t.call.board.config.CallThrottles
	return i == tenants && most > 0 && t.call.throttled >= most
}

// probedLocked notes how a probe ended.
func (b *Board) probedLocked(now time.Duration, c *circuit, o Outcome, hint time.Duration) (n Notice, tell bool) {
	switch o {
	case failure(c.key):
		return b.failedLocked(now, c, hint), true
	case Succeeded:
		c.close(now)
		b.mu.stats.Closed++
		return Notice{Closed: true, Overloaded: c.key.All}, true
	default:
		c.until = max(c.until, now+soon)
		return Notice{}, false
	}
}

// failedLocked opens a circuit for as long as it is configured or was told.
func (b *Board) failedLocked(now time.Duration, c *circuit, hint time.Duration) Notice {
	wait := max(b.config.Open, min(hint, b.config.HintMax))
	b.openLocked(c, now, wait)
	return Notice{Wait: wait, Overloaded: c.key.All}
}
