package contention

import (
	"context"
	"fmt"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/check"
	"github.com/quorlease/quorlease/bench/report"
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
		if err := r.log(stopped, false); err != nil {
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
	return r.log(leader, true)
}

// outside checks what the clients saw, by their clock.
func (r *run) outside(ctx context.Context) error {
	if r.saboteur != nil {
		if _, err := r.saboteur.revive(ctx); err != nil {
			return err
		}
	}
	slack, err := r.slack(ctx)
	if err != nil {
		return err
	}
	r.result.Settings.SlackMS = ms(slack)
	spending, err := r.tally.spending(r.config)
	if err != nil {
		return err
	}
	// A permit may be spent long after its block was debited: that is G2's business.
	if longest := time.Duration(r.tally.longest.Load()); r.config.Path != Limiter {
		r.note("G1", "the clients' clock", spending.Outside(longest),
			fmt.Sprintf("grants in windows of every length, slack %v (the longest answer) and a slot of %v",
				longest.Round(time.Microsecond), spending.Slot))
	}
	r.note("G2", "the clients' clock", spending.Outside(slack),
		fmt.Sprintf("spending in windows of every length, slack %v (the limit's) and a slot of %v", slack, spending.Slot))
	return nil
}

// slack is what a node says of the limit.
func (r *run) slack(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	for {
		var last error
		for _, address := range r.endpoints {
			slack, err := slackAt(ctx, address)
			if err == nil {
				return slack, nil
			}
			last = err
		}
		if sleep(ctx, 100*time.Millisecond) != nil {
			return 0, fmt.Errorf("inspect limit %s: %w", limitName, last)
		}
	}
}

func slackAt(ctx context.Context, address string) (time.Duration, error) {
	conn, err := bench.Dial(address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, err := quorleasev1.NewLimitsClient(conn).Inspect(ctx,
		&quorleasev1.LimitsInspectRequest{Limit: limitName, Key: keyName(0)})
	if err != nil {
		return 0, err
	}
	if len(answer.GetBuckets()) != 1 {
		return 0, fmt.Errorf("%d buckets, want 1", len(answer.GetBuckets()))
	}
	return answer.GetBuckets()[0].GetSlack().AsDuration(), nil
}

// log checks the log of a node that has stopped. Where it is complete, every grant
// that a client saw must have been debited in it.
func (r *run) log(i int, complete bool) error {
	history, err := check.Log(r.nodes.Data(i))
	if err != nil {
		return err
	}
	by := "the log of " + r.nodes.ID(i)
	r.note("G1", by, history.Verdict, fmt.Sprintf("entries %d to %d, %v of authority time",
		history.First, history.Last, (history.To-history.From).Round(time.Millisecond)))
	if !complete || history.Partial {
		return nil
	}
	seen, debited := r.tally.tokens.Load(), history.Granted[limitName]
	r.result.Checks = append(r.result.Checks, report.Check{
		Guarantee: "G1", By: by + " and the clients", OK: seen <= debited,
		Text: fmt.Sprintf("%d tokens that clients were granted, %d debited", seen, debited),
	})
	return nil
}

func (r *run) note(guarantee, by string, v check.Verdict, how string) {
	text := fmt.Sprintf("%d tokens in %d buckets; %s", v.Tokens, v.Buckets, how)
	if v.Takes > 0 {
		text += fmt.Sprintf("; at the closest %d tokens were left", v.Closest)
	}
	if v.Broken > 0 {
		text += fmt.Sprintf("; broken at %d moments, worst %s", v.Broken, v.Worst)
	}
	r.result.Checks = append(r.result.Checks, report.Check{Guarantee: guarantee, By: by, OK: v.Broken == 0, Text: text})
}
