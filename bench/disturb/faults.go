package disturb

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// fault is something that is done to the nodes.
type fault struct {
	slug, name string
	// do does it and undoes it, and returns how often.
	do func(r *run, ctx context.Context) (times int, err error)
	// apart: it needs hosts.
	apart bool
}

// The faults, in their order.
func faults() []fault {
	return []fault{
		{"kills", "the leader killed, again and again", (*run).kill, false},
		{"stop-leader", "the leader stopped", hanging(func(leader, _ int) int { return leader }), false},
		{"stop-follower", "a follower stopped", hanging(func(_, follower int) int { return follower }), false},
		{"part-leader", "the leader cut off from the other nodes, not from its callers", (*run).part, true},
		{"cut-leader", "the leader cut off from everybody", (*run).cut, true},
	}
}

// kill kills the leader every KillEvery for Kills, and starts it again after Away.
func (r *run) kill(ctx context.Context) (times int, err error) {
	c, began := r.config, time.Now()
	for at := time.Duration(0); at+c.KillEvery <= c.Kills; at += c.KillEvery {
		if !pause(ctx, time.Until(began.Add(at))) {
			return times, ctx.Err()
		}
		leader, _, err := r.cluster.leader(ctx)
		if err != nil {
			return times, err
		}
		if err := r.cluster.nodes.Signal(leader, syscall.SIGKILL); err != nil {
			return times, err
		}
		times++
		pause(ctx, c.Away)
		if err := r.cluster.nodes.Start(leader); err != nil {
			return times, err
		}
	}
	pause(ctx, time.Until(began.Add(c.Kills)))
	return times, ctx.Err()
}

// hanging stops a node without its knowing.
func hanging(who func(leader, follower int) int) func(*run, context.Context) (int, error) {
	return func(r *run, ctx context.Context) (int, error) {
		leader, others, err := r.cluster.leader(ctx)
		if err != nil {
			return 0, err
		}
		node := who(leader, others[0])
		if err := r.cluster.nodes.Signal(node, syscall.SIGSTOP); err != nil {
			return 0, err
		}
		pause(ctx, r.config.Hang)
		return 1, r.cluster.nodes.Signal(node, syscall.SIGCONT)
	}
}

// part keeps the leader from the other nodes.
func (r *run) part(ctx context.Context) (int, error) {
	leader, others, err := r.cluster.leader(ctx)
	if err != nil {
		return 0, err
	}
	if err := r.cluster.network.Part(leader, others...); err != nil {
		return 0, err
	}
	pause(ctx, r.config.Hang)
	return 1, r.cluster.network.Mend(leader, others...)
}

// cut takes the leader off the network.
func (r *run) cut(ctx context.Context) (int, error) {
	leader, _, err := r.cluster.leader(ctx)
	if err != nil {
		return 0, err
	}
	if err := r.cluster.network.Isolate(leader); err != nil {
		return 0, err
	}
	pause(ctx, r.config.Hang)
	return 1, r.cluster.network.Join(leader)
}

// phase is one fault that was done, and when.
type phase struct {
	fault
	span  span
	times int
	// alerts that clients raised.
	alerts int64
	// why it was not done.
	why string
}

// disturb does every fault, with the load going on.
func (r *run) disturb(ctx context.Context) error {
	for _, f := range faults() {
		p := phase{fault: f}
		if f.apart && r.cluster.network == nil {
			p.why = r.cluster.apart.Error()
			r.phases = append(r.phases, p)
			continue
		}
		r.say("%s", f.name)
		p.span.from = int64(time.Since(r.began))
		before := r.cluster.alerts.Load()
		times, err := f.do(r, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		p.times = times
		if err := r.cluster.healthy(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if !pause(ctx, r.config.Settle) {
			return ctx.Err()
		}
		p.span.until, p.alerts = int64(time.Since(r.began)), r.cluster.alerts.Load()-before
		r.phases = append(r.phases, p)
	}
	return nil
}

// pause waits for d, and says whether ctx lasted so long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
