package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/rules"
)

const (
	// waitMost is how long the patient wait.
	waitMost = 20 * time.Second
	// greedEvery is how often the greedy asks.
	greedEvery = 60 * time.Millisecond
)

// patient waits in the queue for more than its class has of its own, and in some
// runs leaves before its turn.
type patient struct{ client *client }

// greedy takes every free token as soon as there is one, by a class that is listed
// before that of the patient.
type greedy struct{ client *client }

func (p *patient) start() { p.client.world.stage.At(p.client.host, startFor/2, p.act) }

func (p *patient) act() {
	c := p.client
	again := func() {
		c.world.stage.At(c.host, c.world.stage.Between(10*time.Millisecond, 400*time.Millisecond), p.act)
	}
	if !c.world.busy {
		again()
		return
	}
	op := &logv1.Acquire{
		LeaseId: c.nextID("t"), Client: c.name, Class: "batch", Track: true,
		Charges: rules.Charges(rules.Lane, "", "requests", c.world.stage.Amount(1, 7)),
	}
	if c.world.stage.Chance(3) {
		p.leaveEarly(op)
		again()
		return
	}
	sent := c.clock()
	c.wait(op, waitMost, func(r reply) {
		switch a := r.result.GetAcquire(); {
		case a.GetGranted():
			c.hold(op, r, sent)
		case a != nil:
			c.world.stats.Denied++
		default:
			c.world.stats.Abandoned++
			c.release(op.GetLeaseId(), 3)
		}
		again()
	})
}

// wait asks some node, and lets the answer take as long as the queue may.
func (c *client) wait(op *logv1.Acquire, most time.Duration, done func(reply)) {
	c.world.stats.Requests++
	over := false
	once := func(r reply) {
		if !over {
			over = true
			done(r)
		}
	}
	to := c.world.anyNode()
	message := &call{op: rules.Acquire(op), answer: once, from: c.host, maxWait: most}
	c.world.network.Send(c.host, to.host, func() { to.take(message) })
	c.world.stage.At(c.host, most+2*time.Second, func() {
		if !over {
			c.world.network.Send(c.host, to.host, func() { to.leave(message) })
		}
		once(reply{unsure: true})
	})
}

// leaveEarly asks and goes away, for good.
func (p *patient) leaveEarly(op *logv1.Acquire) {
	c := p.client
	to := c.world.anyNode()
	message := &call{op: rules.Acquire(op), answer: func(reply) {}, from: c.host, maxWait: waitMost}
	c.world.network.Send(c.host, to.host, func() { to.take(message) })
	c.world.stage.At(c.host, c.world.stage.Between(5*time.Millisecond, 600*time.Millisecond), func() {
		c.world.network.Send(c.host, to.host, func() { to.leave(message) })
	})
}

func (g *greedy) start() { g.client.world.stage.At(g.client.host, startFor/2, g.act) }

func (g *greedy) act() {
	c := g.client
	c.world.stage.At(c.host, c.world.stage.Between(greedEvery/2, 2*greedEvery), g.act)
	if !c.world.busy {
		return
	}
	op := &logv1.Acquire{
		LeaseId: c.nextID("u"), Client: c.name, Class: "live", Charges: rules.Charges(rules.Lane, "", "requests", 1),
	}
	sent := c.clock()
	c.call(rules.Acquire(op), time.Second, func(r reply) {
		if r.result.GetAcquire().GetGranted() {
			c.hold(op, r, sent)
		}
	})
}
