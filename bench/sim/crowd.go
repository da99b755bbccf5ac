package sim

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/share"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/client/failopen"
)

// addCrowd brings in those who share a limit, in every fourth world.
func (w *World) addCrowd(seed uint64) {
	if w.trap != trap.None || seed%4 != 1 {
		return
	}
	limit := rules.NewCrowd()
	w.limits = append(w.limits, limit)
	w.witness.Stats = &w.stats
	w.crowd = share.New(share.Config{
		Stage: w.stage, Network: w.network, Judge: w.judge, Stats: &w.stats, Limit: limit,
		Busy: func() bool { return w.busy }, Active: func() bool { return w.faulty },
		Nodes: func() []*stage.Host {
			var hosts []*stage.Host
			for _, n := range w.nodes {
				hosts = append(hosts, n.host)
			}
			return hosts
		},
	})
	for i := range 6 {
		c := w.newcomer(fmt.Sprint("q", i))
		w.crowd.Add(c.host, func(
			op *logv1.Operation, timeout time.Duration, done func(*logv1.Result, failopen.Signal),
		) {
			c.call(op, timeout, func(r reply) { done(r.result, r.signal()) })
		})
	}
}
