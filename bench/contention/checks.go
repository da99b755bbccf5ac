package contention

import (
	"context"

	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/tally"
)

// check looks at the guarantees: from outside first, while somebody still answers,
// then in the logs of nodes that were stopped.
func (r *run) check(ctx context.Context) error {
	r.say("checking G1 and G2")
	if err := r.outside(ctx); err != nil {
		return err
	}
	if r.nodes == nil {
		return nil
	}
	r.result.Faults = append(r.result.Faults, r.saboteur.done...)
	if stopped := r.saboteur.stopped; stopped >= 0 {
		// It may have stopped before the last grant.
		if err := r.note(tally.Log(r.nodes, stopped, false, r.tally)); err != nil {
			return err
		}
	}
	// Whoever leads has every entry that was acknowledged.
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	leader, err := r.nodes.Leader(ctx)
	if err != nil {
		return err
	}
	if err := r.nodes.Stop(leader, stopWait); err != nil {
		return err
	}
	return r.note(tally.Log(r.nodes, leader, true, r.tally))
}

// outside checks what the clients saw, by their clock.
func (r *run) outside(ctx context.Context) error {
	if r.saboteur != nil {
		if _, err := r.saboteur.revive(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	slack, err := r.tally.Slack(ctx, r.endpoints)
	if err != nil {
		return err
	}
	r.result.Settings.SlackMS = ms(slack)
	return r.note(r.tally.Outside(slack, r.config.Path == Limiter))
}

// note takes over what a check came to.
func (r *run) note(checks []report.Check, err error) error {
	r.result.Checks = append(r.result.Checks, checks...)
	return err
}
