package disturb

import (
	"context"
	"errors"
	"fmt"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench/check"
	"github.com/quorlease/quorlease/bench/report"
)

// check holds everything that was granted to G1, G2 and G4, and all nodes to G9. It ends
// the nodes.
func (r *run) check(ctx context.Context) error {
	r.say("checking G1, G2, G4 and G9")
	nodes := r.cluster.nodes
	leader, _, err := r.cluster.leader(ctx)
	if err != nil {
		return err
	}
	for _, s := range []*stream{r.plenty, r.short, r.exact} {
		if err := r.outside(ctx, s, leader); err != nil {
			return err
		}
	}
	if err := r.cluster.leave(); err != nil { //nolint:contextcheck // a client ends in its own time
		return err
	}
	within, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	index, _, err := nodes.SameState(within)
	r.note("G9", "all nodes", err == nil, "the same state")
	if err != nil {
		r.result.Checks[len(r.result.Checks)-1].Text = err.Error()
	}
	r.say("all nodes have one state at entry %d", index)
	for i := range nodes.Len() {
		if err := nodes.Stop(i, stopWait); err != nil {
			return err
		}
	}
	for i := range nodes.Len() {
		if err := r.log(i, i == leader); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) note(guarantee, by string, ok bool, format string, values ...any) {
	r.result.Checks = append(r.result.Checks, report.Check{
		Guarantee: guarantee, By: by, OK: ok, Text: fmt.Sprintf(format, values...),
	})
}

// outside holds what clients were granted of a limit to G2.
func (r *run) outside(ctx context.Context, s *stream, leader int) error {
	slack, err := r.slack(ctx, s, leader)
	if err != nil {
		return err
	}
	excess := s.history.excess(s.spec(), len(s.keys))
	r.result.Slacks = append(r.result.Slacks, Slack{
		Limit: s.limit, SlackMS: ms(slack), SlackTokens: s.spec().Tokens(slack),
		SeenMS: ms(excess.Time), SeenTokens: excess.Tokens,
	})
	r.note("G2", "the clients' clock ("+s.limit+")", excess.Time <= slack,
		"%d tokens of %d keys, each spent at the worst moment of its lease: above burst + rate·d at most %v; the slack is %v",
		s.history.tokens(), len(s.keys), excess, slack)
	return nil
}

// slack is what a node says of a limit.
func (r *run) slack(ctx context.Context, s *stream, node int) (time.Duration, error) {
	conn, err := r.cluster.nodes.Conn(node)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	answer, err := quorleasev1.NewLimitsClient(conn).Inspect(ctx,
		&quorleasev1.LimitsInspectRequest{Limit: s.limit, Key: s.keys[0]})
	if err != nil {
		return 0, fmt.Errorf("inspect limit %s: %w", s.limit, err)
	}
	if len(answer.GetBuckets()) != 1 {
		return 0, errors.New("inspect: want 1 bucket")
	}
	return answer.GetBuckets()[0].GetSlack().AsDuration(), nil
}

// log holds the log of a node that has stopped to G1. The leader's has every lease that
// was acknowledged, once, and debits for everything that was granted.
func (r *run) log(i int, leader bool) error {
	history, err := check.Log(r.cluster.nodes.Data(i))
	if err != nil {
		return err
	}
	by := "the log of " + r.cluster.nodes.ID(i)
	r.note("G1", by, history.Broken == 0, "%s", history.Said())
	for i := range history.Spent {
		one := &history.Spent[i]
		r.note("G2", by, one.OK(), "%s", one.Said())
	}
	if !leader || history.Partial {
		return nil
	}
	for _, s := range []*stream{r.plenty, r.short, r.exact} {
		seen, debited := s.history.tokens(), history.Granted[s.limit]
		r.note("G1", by+" and the clients ("+s.limit+")", seen <= debited,
			"%d tokens that clients were granted, %d debited", seen, debited)
		if !s.tracked {
			continue
		}
		lost, doubled := history.Missing(s.history.leases)
		r.lost += lost
		r.note("G4", by+" and the clients ("+s.limit+")", lost+doubled == 0,
			"%d leases that were acknowledged: %d are not there, %d were granted twice",
			len(s.history.leases), lost, doubled)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
