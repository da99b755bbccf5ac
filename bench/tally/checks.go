package tally

import (
	"context"
	"fmt"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/check"
	"github.com/quorlease/quorlease/bench/report"
)

// Outside holds what the clients saw to both guarantees, by their clock. slack is the
// limit's, as a node says it. A permit may be spent long after its block was
// debited, which is G2's business: where clients spend permits only that is looked at.
func (t *Tally) Outside(slack time.Duration, permits bool) (checks []report.Check, err error) {
	spending, err := t.spending()
	if err != nil {
		return nil, err
	}
	if longest := time.Duration(t.longest.Load()); !permits {
		checks = append(checks, verdict("G1", "the clients' clock", spending.Outside(longest),
			fmt.Sprintf("grants in windows of every length, slack %v (the longest answer) and a slot of %v",
				longest.Round(time.Microsecond), spending.Slot)))
	}
	return append(checks, verdict("G2", "the clients' clock", spending.Outside(slack),
		fmt.Sprintf("spending in windows of every length, slack %v (the limit's) and a slot of %v",
			slack, spending.Slot))), nil
}

// Log holds the log of node i, which has stopped, to G1. Where it is complete, every
// grant that a client saw must have been debited in it.
func (t *Tally) Log(nodes *bench.Nodes, i int, complete bool) ([]report.Check, error) {
	history, err := check.Log(nodes.Data(i))
	if err != nil {
		return nil, err
	}
	by := "the log of " + nodes.ID(i)
	checks := []report.Check{verdict("G1", by, history.Verdict, fmt.Sprintf("entries %d to %d, %v of authority time",
		history.First, history.Last, (history.To-history.From).Round(time.Millisecond)))}
	if !complete || history.Partial {
		return checks, nil
	}
	seen, debited := t.tokens.Load(), history.Granted[t.bucket.Limit]
	return append(checks, report.Check{
		Guarantee: "G1", By: by + " and the clients", OK: seen <= debited,
		Text: fmt.Sprintf("%d tokens that clients were granted, %d debited", seen, debited),
	}), nil
}

func verdict(guarantee, by string, v check.Verdict, how string) report.Check {
	text := fmt.Sprintf("%d tokens in %d buckets; %s", v.Tokens, v.Buckets, how)
	if v.Takes > 0 {
		text += fmt.Sprintf("; at the closest %d tokens were left", v.Closest)
	}
	if v.Broken > 0 {
		text += fmt.Sprintf("; broken at %d moments, worst %s", v.Broken, v.Worst)
	}
	return report.Check{Guarantee: guarantee, By: by, OK: v.Broken == 0, Text: text}
}

// retryPause is between two rounds of asking everybody.
const retryPause = 100 * time.Millisecond

// Slack is what a node says of the limit. Everybody is asked until somebody answers
// or ctx ends.
func (t *Tally) Slack(ctx context.Context, endpoints []string) (time.Duration, error) {
	for {
		var last error
		for _, address := range endpoints {
			slack, err := t.slackAt(ctx, address)
			if err == nil {
				return slack, nil
			}
			last = err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return 0, fmt.Errorf("inspect limit %s: %w", t.bucket.Limit, last)
		}
	}
}

func (t *Tally) slackAt(ctx context.Context, address string) (time.Duration, error) {
	conn, err := bench.Dial(address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, err := quorleasev1.NewLimitsClient(conn).Inspect(ctx,
		&quorleasev1.LimitsInspectRequest{Limit: t.bucket.Limit, Key: t.keys[0]})
	if err != nil {
		return 0, err
	}
	if len(answer.GetBuckets()) != 1 {
		return 0, fmt.Errorf("%d buckets, want 1", len(answer.GetBuckets()))
	}
	return answer.GetBuckets()[0].GetSlack().AsDuration(), nil
}
