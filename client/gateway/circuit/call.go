package circuit

import "time"

// Call is one request of a tenant, with all its tries. It is used by one goroutine at a
// time.
type Call struct {
	board     *Board
	keys      [2]Key
	action    Action
	throttled int
}

// Call returns a request that is to go to a deployment. action is what is done with it while
// that is closed: Shed or Defer.
func (b *Board) Call(tenant, deployment string, action Action) *Call {
	return &Call{
		board: b, action: action,
		keys: [2]Key{{Tenant: tenant, Deployment: deployment}, {Deployment: deployment, All: true}},
	}
}

// Verdict is what a circuit says of a request.
type Verdict struct {
	// Action is what is to be done with it.
	Action Action
	// Left is for how long it lets nothing pass, 0 with Forward. A refusal says so to its
	// client, with 503: that is the provider's trouble, and no limit of the client's.
	Left time.Duration
	// Key is the circuit that refuses: the one that does so for longer.
	Key Key
	// Probe: the request finds out whether the circuit closes.
	Probe bool
}

// Look says what Forward would. It permits nothing.
func (c *Call) Look(now time.Duration) Verdict {
	c.learn(now)
	b := c.board
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.lookLocked(now)
}

func (c *Call) lookLocked(now time.Duration) Verdict {
	v := Verdict{Action: Forward}
	for _, key := range c.keys {
		known := c.board.mu.circuits[key]
		if known == nil {
			continue
		}
		c.board.useLocked(now, known)
		left, probe := known.left(now)
		if left > v.Left {
			v.Action, v.Left, v.Key = c.action, left, key
		}
		v.Probe = v.Probe || probe
	}
	v.Probe = v.Probe && v.Action == Forward
	return v
}

// learn asks what others have said. It is not called with the lock: what is shared is not
// this package's.
func (c *Call) learn(now time.Duration) {
	b := c.board
	if b.config.Shared == nil {
		return
	}
	for _, key := range c.keys {
		if n, news := b.config.Shared.Learn(now, key); news {
			b.Learn(now, key, n)
		}
	}
}

// Try is one attempt that was permitted. It is used by one goroutine at a time.
type Try struct {
	call *Call
	// turns are those of the two circuits, 0 where there was none; probes likewise.
	turns, probes [2]uint64
	done          bool
}

// Forward permits one attempt, now and not later: after a wait it has to be asked again.
// Without a Try the verdict says why. Done has to be called for a Try.
func (c *Call) Forward(now time.Duration) (*Try, Verdict) {
	c.learn(now)
	t, v := c.forward(now)
	if t == nil || !v.Probe || c.board.config.Prober == nil {
		return t, v
	}
	for i, key := range c.keys {
		if t.probes[i] != 0 && !c.board.config.Prober.Claim(now, key, c.board.config.ProbeMax) {
			return nil, t.withdraw(Verdict{Action: c.action, Left: soon, Key: key})
		}
	}
	return t, v
}

func (c *Call) forward(now time.Duration) (*Try, Verdict) {
	b := c.board
	b.mu.Lock()
	defer b.mu.Unlock()
	v := c.lookLocked(now)
	if v.Action != Forward {
		b.refusedLocked(v)
		return nil, v
	}
	t := &Try{call: c}
	for i, key := range c.keys {
		known := b.mu.circuits[key]
		if known == nil {
			continue
		}
		t.turns[i] = known.turn
		if known.open {
			if known.probe != 0 {
				b.mu.stats.Lost++
			}
			b.mu.probes++
			b.mu.stats.Probes++
			known.probe, known.lost = b.mu.probes, now+b.config.ProbeMax
			t.probes[i] = known.probe
		}
	}
	return t, v
}

func (b *Board) refusedLocked(v Verdict) {
	if v.Action == Defer {
		b.mu.stats.Deferred++
	} else {
		b.mu.stats.Shed++
	}
}

// withdraw gives back probes that another gateway has.
func (t *Try) withdraw(v Verdict) Verdict {
	b := t.call.board
	b.mu.Lock()
	defer b.mu.Unlock()
	t.done = true
	for i, key := range t.call.keys {
		if c := b.mu.circuits[key]; c != nil && t.probes[i] != 0 && c.probe == t.probes[i] {
			c.probe = 0
			b.mu.stats.Probes--
		}
	}
	b.refusedLocked(v)
	return v
}

// Stands says whether a Try still is worth sending at now, by someone who has waited with
// it after all: nothing has opened since, and a probe is not lost.
func (t *Try) Stands(now time.Duration) bool {
	b := t.call.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, key := range t.call.keys {
		c := b.mu.circuits[key]
		if c == nil {
			continue
		}
		mine := t.probes[i] != 0 && t.probes[i] == c.probe && now < c.lost
		if c.open && (!mine || now < c.until) {
			return false
		}
	}
	return !t.done
}
