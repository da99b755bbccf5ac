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
		what := "the longest answer"
		if t.bucket.Escrow {
			longest, what = longest+EscrowLife, "the longest answer and the life of escrow"
		}
		v := spending.Outside(longest)
		checks = append(checks, verdict("G1", "the clients' clock", v,
			v.Said(fmt.Sprintf("grants in windows of every length, slack %v (%s) and a slot of %v",
				longest.Round(time.Microsecond), what, spending.Slot))))
	}
	v := spending.Outside(slack)
	return append(checks, verdict("G2", "the clients' clock", v,
		v.Said(fmt.Sprintf("spending in windows of every length, slack %v (the limit's) and a slot of %v",
			slack, spending.Slot)))), nil
}

// Log holds the log of node i, which has stopped, to G1 and G2. Where it is said to be complete,
// every grant that clients saw must have been debited in it, and it must begin with the
// first entry.
func Log(nodes *bench.Nodes, i int, complete bool, tallies ...*Tally) ([]report.Check, error) {
	history, err := check.Log(nodes.Data(i))
	if err != nil {
		return nil, err
	}
	by := "the log of " + nodes.ID(i)
	checks := []report.Check{verdict("G1", by, history.Verdict, history.Said())}
	for i := range history.Spent {
		one := &history.Spent[i]
		checks = append(checks, report.Check{Guarantee: "G2", By: by, OK: one.OK(), Text: one.Said()})
	}
	if !complete {
		return checks, nil
	}
	for _, t := range tallies {
		c := t.within(history, by)
		if len(tallies) > 1 {
			c.By += " (" + t.bucket.Limit + ")"
		}
		checks = append(checks, c)
	}
	return checks, nil
}

// within compares what clients were granted with what a log debited.
func (t *Tally) within(history *check.History, by string) report.Check {
	seen, debited := t.tokens.Load(), history.Granted[t.bucket.Limit]
	c := report.Check{
		Guarantee: "G1", By: by + " and the clients", OK: seen <= debited,
		Text: fmt.Sprintf("%d tokens that clients were granted, %d debited", seen, debited),
	}
	if history.Partial {
		c.OK = false
		c.Text = "the log begins with a snapshot: what was debited before is not known"
	}
	return c
}

func verdict(guarantee, by string, v check.Verdict, text string) report.Check {
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
