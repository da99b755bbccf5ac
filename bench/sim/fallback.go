package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/away"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/client/failopen"
)

// newFallback is what c asks of the limit that is shared while nobody answers.
func newFallback(c *client) *away.Client {
	w := c.world
	return away.New(away.Config{
		Stage: w.stage, Host: c.host, Judge: w.judge, Trap: w.trap, Name: c.name, Limit: w.limit(rules.Share),
		Think: c.think, Busy: func() bool { return w.busy }, NextID: c.nextID,
		Call: func(op *logv1.Operation, timeout time.Duration, done func(away.Answer)) {
			c.call(op, timeout, func(r reply) {
				done(away.Answer{Result: r.result, Signal: r.signal(), Hold: func(op *logv1.Acquire, sent time.Duration) {
					c.hold(op, r, sent)
				}})
			})
		},
		Incidents: &w.stats.Incidents, Local: &w.stats.Local,
	})
}

// signal is what a client makes of a reply.
func (r reply) signal() failopen.Signal {
	switch {
	case r.result != nil:
		return failopen.Answered
	case r.noQuorum:
		return failopen.NoQuorum
	case r.unsure:
		return failopen.Slow
	}
	return failopen.NoLeader
}
