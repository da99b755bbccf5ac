package sim

import (
	"fmt"
	"strconv"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/away"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

// client asks for leases, spends what it holds by its own clock, and decides by
// itself while nobody answers.
type client struct {
	world *World
	name  string
	host  *stage.Host
	// think is the longest pause between two requests.
	think    time.Duration
	serial   int
	fallback *away.Client
}

// clock is what the client measures lives with.
func (c *client) clock() time.Duration {
	if c.world.trap == trap.HolderSleeps {
		return c.host.Mono()
	}
	return c.host.Boot()
}

// start begins two streams of requests: for leases, and for the limit that is
// shared while nobody answers.
func (c *client) start() {
	c.world.stage.At(c.host, c.world.stage.Between(0, c.think), c.act)
	c.world.stage.At(c.host, c.world.stage.Between(0, c.think), c.fallback.Act)
}

func (c *client) act() {
	c.world.stage.At(c.host, c.world.stage.Between(time.Millisecond, c.think), c.act)
	if !c.world.busy {
		return
	}
	switch c.world.stage.Rand.IntN(14) {
	case 0, 1, 2:
		c.untracked("", rules.Charges(rules.Rate, "", "requests", c.world.stage.Amount(1, 6)))
	case 3, 4, 5:
		c.tracked(rules.Rate, rules.Charges(rules.Rate, "", "requests", c.world.stage.Amount(1, 6)))
	case 6, 7:
		key := fmt.Sprint("k", c.world.stage.Rand.IntN(3))
		c.tracked(rules.Pair, append(rules.Charges(rules.Pair, key, "requests", c.world.stage.Amount(1, 3)),
			rules.Charges(rules.Pair, key, "tokens", c.world.stage.Amount(1, 60))...))
	case 11:
		key := fmt.Sprint("r", c.world.stage.Rand.IntN(12))
		c.tracked(rules.Rare, rules.Charges(rules.Rare, key, "requests", c.world.stage.Amount(1, 12)))
	case 8, 9, 10:
		c.tracked(rules.Mixed, rules.Charges(rules.Mixed, "", "requests", c.world.stage.Amount(1, 7)))
	default:
		c.tracked(rules.Loose, rules.Charges(rules.Loose, "", "requests", c.world.stage.Amount(1, 5)))
	}
}

// nextID is a lease id; its first byte says whether it will be tracked.
func (c *client) nextID(kind string) []byte {
	c.serial++
	id := make([]byte, 0, 32)
	id = append(append(append(append(id, kind...), '-'), c.name...), '-')
	id = strconv.AppendInt(id, int64(c.serial), 10)
	// What a short one lacks is zero, what a long one has too much is cut off.
	return id[:16]
}

// call sends an operation to some node and calls done once: with the answer, or
// with an unsure reply when timeout has passed on the client's clock.
func (c *client) call(op *logv1.Operation, timeout time.Duration, done func(reply)) {
	c.world.stats.Requests++
	message := &call{op: op, from: c.host}
	message.answer = func(r reply) {
		if first := done; first != nil {
			done = nil
			first(r)
		}
	}
	to := c.world.anyNode()
	c.world.network.Send(c.host, to.host, func() { to.take(message) })
	c.world.stage.At(c.host, timeout, func() { message.answer(reply{unsure: true}) })
}

// persist sends an operation, which has to be safe to repeat, until it has an
// answer or tries are used up.
func (c *client) persist(op *logv1.Operation, tries int, done func(reply)) {
	c.call(op, c.world.stage.Between(300*time.Millisecond, 1500*time.Millisecond), func(r reply) {
		if r.result != nil || tries <= 1 {
			done(r)
			return
		}
		c.world.stats.Repeats++
		c.world.stage.At(c.host, c.world.stage.Between(10*time.Millisecond, 200*time.Millisecond), func() {
			c.persist(op, tries-1, done)
		})
	})
}

func (c *client) untracked(class string, want []*logv1.Charge) {
	op := &logv1.Acquire{LeaseId: c.nextID("u"), Client: c.name, Class: class, Charges: want}
	sent := c.clock()
	c.call(rules.Acquire(op), time.Second, func(r reply) {
		if r.result.GetAcquire().GetGranted() {
			c.hold(op, r, sent)
		} else if r.result.GetAcquire() != nil {
			c.world.stats.Denied++
		}
	})
}

// tracked asks until it has an answer; whoever is impatient, or gets none, takes
// it back, by an operation that may overtake the acquire (T23).
func (c *client) tracked(limit string, want []*logv1.Charge) {
	op := &logv1.Acquire{LeaseId: c.nextID("t"), Client: c.name, Track: true, Charges: want}
	switch limit {
	case rules.Pair, rules.Pool:
		op.Class = []string{"live", "batch"}[c.world.stage.Rand.IntN(2)]
	case rules.Mixed:
		op.Class = []string{"live", "batch", "spot"}[c.world.stage.Rand.IntN(3)]
	}
	sent := c.clock()
	done := func(r reply) {
		switch a := r.result.GetAcquire(); {
		case a.GetGranted():
			c.hold(op, r, sent)
		case a != nil:
			c.world.stats.Denied++
		case r.result == nil:
			c.world.stats.Abandoned++
			c.release(op.GetLeaseId(), 3)
		}
	}
	if c.world.stage.Chance(10) {
		c.call(rules.Acquire(op), c.world.stage.Between(time.Millisecond, 50*time.Millisecond), done)
		return
	}
	c.persist(rules.Acquire(op), 4, done)
}

func (c *client) release(id []byte, tries int) {
	op := &logv1.Operation{Kind: &logv1.Operation_Release{Release: &logv1.Release{LeaseId: id, Client: c.name}}}
	c.persist(op, tries, func(reply) {})
}
