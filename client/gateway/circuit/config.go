package circuit

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorlease/quorlease/client/gateway/internal/bound"
)

// Action is what is to be done with a request.
type Action uint8

// The actions.
const (
	// Shed: refuse it now, and say for how long.
	Shed Action = iota
	// Defer: keep it until the circuit may be closed again.
	Defer
	// Forward: nothing stands in its way.
	Forward
)

// Notice is what one gateway tells the others of a circuit.
type Notice struct {
	// Wait is for how much longer it is open, jitter left out. 0: for no longer, and
	// nobody knows yet whether it may close.
	Wait time.Duration
	// Closed: a probe has succeeded.
	Closed bool
	// Overloaded: the deployment is, for all tenants.
	Overloaded bool
}

// Shared carries notices between gateways, as the authority does with feedback: what
// is published becomes the answer "throttled" or "overloaded" with that wait, and how
// long the authority keeps a key closed is what there is to learn. Neither method may
// block or call the Board.
type Shared interface {
	// Publish tells the others.
	Publish(now time.Duration, key Key, n Notice)
	// Learn is what others have said that this Board was not given yet, with what is left
	// of its wait. Of several notices the longest wait counts, and Closed only if none has
	// opened since.
	Learn(now time.Duration, key Key) (n Notice, news bool)
}

// Prober allows one gateway at a time to probe. Claim may not block, nor call the Board;
// it is false where another has the probe, and where that is not known yet: the next
// request asks again. What was claimed lasts until a notice of the key, or its time is
// over.
type Prober interface {
	Claim(now time.Duration, key Key, most time.Duration) bool
}

// Config says when circuits open and for how long. The zero value is ready.
type Config struct {
	// CallThrottles is how many 429s of one call open the tenant's circuit, 1 to 100.
	// Default 3; -1: a call alone never does.
	CallThrottles int
	// Least is how many requests there must have been in the window, 1 to 2^20, and
	// FractionBP which part of them must have failed, in basis points. Defaults 20 and
	// 5,000; FractionBP -1: the rate never opens it.
	Least      int
	FractionBP int
	// Window is over which they are counted, 1 s to 1 h; in two halves, so that it is
	// half as long at times. Default 10 s.
	Window time.Duration
	// Open is how long a circuit stays open, 1 s to 1 h, unless the provider asks for
	// more. Default 30 s.
	Open time.Duration
	// HintMax is the longest wait that a provider is believed, Open to 24 h. Default 1 h.
	HintMax time.Duration
	// JitterMax is what is added by chance at most, 1 ms to 10 min. Default 3 s. It can't
	// be 0: gateways that open together would probe together.
	JitterMax time.Duration
	// Jitter draws from 0 to most; what is outside counts as the nearer end. Nil: evenly.
	Jitter func(most time.Duration) time.Duration
	// ProbeMax is after how long a probe that did not end counts as lost, and the next
	// request is one; 1 s to 1 h. Default 60 s.
	ProbeMax time.Duration
	// Keys is how many circuits are remembered, 16 to 2^20. Default 16,384. Only what has
	// failed has one. Where all are open, further ones stay closed.
	Keys int
	// Idle is after how long without a request a circuit that is not open is forgotten,
	// 1 s to 24 h. Default 10 min.
	Idle time.Duration
	// Shared tells other gateways and hears from them, and Prober sees to it that one of
	// them probes. Nil: this gateway is alone, and each one probes for itself.
	Shared Shared
	Prober Prober
}

func (c *Config) defaults() {
	bound.Default(&c.CallThrottles, 3)
	bound.Default(&c.Least, 20)
	bound.Default(&c.FractionBP, 5000)
	bound.Default(&c.Window, 10*time.Second)
	bound.Default(&c.Open, 30*time.Second)
	bound.Default(&c.HintMax, max(time.Hour, c.Open))
	bound.Default(&c.JitterMax, 3*time.Second)
	bound.Default(&c.ProbeMax, time.Minute)
	bound.Default(&c.Keys, 16_384)
	bound.Default(&c.Idle, 10*time.Minute)
	if c.Jitter == nil {
		c.Jitter = func(most time.Duration) time.Duration { return rand.N(most + 1) }
	}
}

func (c *Config) validate() error {
	return errors.Join(
		orOff("call throttles", c.CallThrottles, 100),
		bound.Within("least", c.Least, 1, 1<<20),
		orOff("fraction", c.FractionBP, 10_000),
		bound.Within("window", c.Window, time.Second, time.Hour),
		bound.Within("open", c.Open, time.Second, time.Hour),
		bound.Within("hint max", c.HintMax, c.Open, 24*time.Hour),
		bound.Within("jitter max", c.JitterMax, time.Millisecond, 10*time.Minute),
		bound.Within("probe max", c.ProbeMax, time.Second, time.Hour),
		bound.Within("keys", c.Keys, 16, 1<<20),
		bound.Within("idle", c.Idle, time.Second, 24*time.Hour),
	)
}

func orOff(name string, value, most int) error {
	if value == -1 {
		return nil
	}
	return bound.Within(name, value, 1, most)
}
