package fallback

import (
	"fmt"
	"time"

	"github.com/quorlease/quorlease/client/gateway/provider"
)

// Mode is what a class does when it can't be served at once (S2-33).
type Mode uint8

// The modes.
const (
	// Jitter waits for its turn and, between tries, for a random time; and falls back where
	// the wait is longer than it may be. For programs of many tenants that share limits.
	Jitter Mode = iota
	// Fixed waits as long each time, and never falls back. For small tools of which few run
	// at once: many would come back in one moment.
	Fixed
	// Immediate falls back at the first refusal. For what is critical and seldom: under load
	// its cost explodes, up to the share.
	Immediate
	// Defer waits, also until a circuit closes, and never falls back. For batches.
	Defer
)

var modes = [...]string{"jitter", "fixed", "immediate", "defer"}

// String is the mode's name.
func (m Mode) String() string {
	if int(m) >= len(modes) {
		return "unknown"
	}
	return modes[m]
}

// DelayMax is the longest fixed delay, and delayDefault the one that is not said.
const (
	DelayMax     = time.Minute
	delayDefault = time.Second
)

// Manner is how a class goes about refusals.
type Manner struct {
	Mode Mode
	// Delay is how long Fixed waits between tries, up to DelayMax. Default 1 s. Other modes
	// have none.
	Delay time.Duration
}

// Validate says what is out of range. It begins with the field.
func (m Manner) Validate() error {
	switch {
	case m.Mode > Defer:
		return fmt.Errorf("mode %d: must be one of %v", m.Mode, modes)
	case m.Delay < 0 || m.Delay > DelayMax:
		return fmt.Errorf("delay %s: must be from 0s to %s", m.Delay, DelayMax)
	case m.Delay > 0 && m.Mode != Fixed:
		return fmt.Errorf("delay %s: only a class of mode fixed has one, not %s", m.Delay, m.Mode)
	}
	return nil
}

// FallsBack says whether a class of this manner ever does.
func (m Manner) FallsBack() bool { return m.Mode == Jitter || m.Mode == Immediate }

// Pause is how long to wait before a further try: as the schedule says, or the fixed delay.
// It is never shorter than what the provider asks for.
func (m Manner) Pause(s provider.Schedule, w provider.Wait, retries int, draw func(n int64) int64) time.Duration {
	if m.Mode != Fixed {
		return s.Pause(w, retries, draw)
	}
	delay := m.Delay
	if delay <= 0 {
		delay = delayDefault
	}
	return max(w.For, delay)
}

// Cause is what stands between a call and its own model.
type Cause uint8

// The causes.
const (
	// None: nothing that another model would help against.
	None Cause = iota
	// Refused: the provider has said no, for now.
	Refused
	// Denied: a limit gives nothing now.
	Denied
	// Closed: the circuit is open.
	Closed
	// Unreached: nothing could be sent.
	Unreached
)

// DeniedIf is Denied, or None where it is false; UnreachedIf is likewise.
func DeniedIf(is bool) Cause { return causeIf(Denied, is) }

// UnreachedIf is Unreached, or None where it is false.
func UnreachedIf(is bool) Cause { return causeIf(Unreached, is) }

func causeIf(c Cause, is bool) Cause {
	if !is {
		return None
	}
	return c
}

// Trouble is a call that is not served by its own model now.
type Trouble struct {
	Cause Cause
	// Refusals is how often a provider has refused this call so far.
	Refusals int
	// Wait is about how long until its own model would serve it. 0: not known.
	Wait time.Duration
	// Allowed is how long its class lets it wait. 0: not at all.
	Allowed time.Duration
	// Last: however short the wait is, this call does not wait again.
	Last bool
}

// Considers says whether another model is thought of: of Immediate for whatever trouble, of
// Jitter where the wait is longer than it may be, and never for the first refusal of a
// provider (S2-28).
func (m Manner) Considers(t Trouble) bool {
	switch {
	case t.Cause == None || !m.FallsBack():
		return false
	case m.Mode == Immediate:
		return true
	case t.Cause == Refused && t.Refusals < 2:
		return false
	default:
		return t.Last || t.Wait > t.Allowed
	}
}

// IsSooner says whether a model that takes other answers before one would that takes own and
// has to be waited for. Where anything of it is not known it does.
func (t Trouble) IsSooner(own, other time.Duration) bool {
	return t.Wait <= 0 || own <= 0 || other <= 0 || other < t.Wait+own
}
