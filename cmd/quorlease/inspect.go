package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const inspectLong = `Show the buckets of a limit, and of one key where it has keys: level, debt, what
unsettled leases can still give back, and the slack, which is how far spending
can trail debiting. Below are the counts of what clients admitted by themselves
while nobody answered and have reported since.`

func newInspect(a *app) *cobra.Command {
	request := &quorleasev1.LimitsInspectRequest{}
	cmd := &cobra.Command{
		Use:   "inspect LIMIT[/KEY]",
		Short: "Show the buckets of a limit",
		Long:  inspectLong,
		Example: `  quorlease inspect demo
  quorlease inspect llm/team-a -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			t, err := argument.ParseTarget(args[0])
			if err != nil {
				return err
			}
			request.Limit, request.Key = t.Limit, t.Key
			answer, err := a.inspect(c.Context(), request)
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) { inspectText(w, answer) })
		},
	}
	cmd.Flags().BoolVar(&request.Stale, "stale", false, "answer from the node's own replica, which may lag")
	return cmd
}

func (a *app) inspect(
	ctx context.Context, request *quorleasev1.LimitsInspectRequest,
) (*quorleasev1.LimitsInspectResponse, error) {
	return answerOf(ctx, a, ask.Read,
		ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.Inspect, request))
}

func inspectText(w io.Writer, r *quorleasev1.LimitsInspectResponse) {
	fmt.Fprintf(w, "limit   %s\n", exit.Printable(r.GetLimit().GetName()))
	if r.GetKey() != "" {
		fmt.Fprintf(w, "key     %s\n", exit.Printable(r.GetKey()))
	}
	seen := "never charged, or full again"
	if r.GetSeen() {
		seen = "in use"
	}
	fmt.Fprintf(w, "bucket  %s\n", seen)
	fmt.Fprintf(w, "leases  %d open\n", r.GetOpenLeases())
	fmt.Fprintf(w, "keys    %d\n", r.GetKeys())
	fmt.Fprintf(w, "now     %s since the cluster began\n\n", time.Duration(r.GetNow()))
	if r.GetLimit().GetUnlimited() {
		fmt.Fprintln(w, "unlimited: nothing is counted")
		reportsText(w, r)
		return
	}
	rows := make([][]string, 0, len(r.GetBuckets()))
	var classes [][]string
	for _, b := range r.GetBuckets() {
		rows = append(rows, []string{
			b.GetDimension(), show.Number(b.GetLevel()), show.Number(b.GetDebt()), show.Number(b.GetBurst()),
			show.Rate(b.GetRate()), show.Number(b.GetOpen()), show.Duration(b.GetSlack()), show.Number(b.GetSlackTokens()),
		})
		for _, c := range b.GetClasses() {
			classes = append(classes, []string{
				b.GetDimension(), c.GetName(), show.Number(c.GetLevel()), show.Number(c.GetDebt()),
				show.Number(c.GetSubBurst()), show.Number(c.GetEffectiveBurst()),
			})
		}
	}
	show.Table(w, "DIMENSION LEVEL DEBT BURST RATE OPEN SLACK SLACK_TOKENS", rows)
	// The one unnamed class of a limit without classes says nothing new.
	if len(r.GetLimit().GetClasses()) > 0 && len(classes) > 0 {
		fmt.Fprintln(w)
		show.Table(w, "DIMENSION CLASS LEVEL DEBT SUB_BURST EFFECTIVE_BURST", classes)
	}
	reportsText(w, r)
}

// reportsText shows what was reported, if anything was.
func reportsText(w io.Writer, r *quorleasev1.LimitsInspectResponse) {
	if len(r.GetReports()) == 0 {
		return
	}
	rows := make([][]string, 0, len(r.GetReports()))
	for _, one := range r.GetReports() {
		rows = append(rows, []string{
			one.GetClient(), one.GetSessionId(), one.GetDimension(), one.GetClass(), show.Number(one.GetTokens()),
			time.Duration(one.GetAt()).String(),
		})
	}
	fmt.Fprintln(w)
	show.Table(w, "REPORTED_BY SESSION DIMENSION CLASS TOKENS AT", rows)
}
