package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const inspectLong = `Show the buckets of a limit, and of one key where it has keys: level, debt, what
unsettled leases can still give back, and the slack, which is how far spending
can trail debiting; of slots how many are in use, of a quota its window, and what
a provider's answers have done to the key. Below is what nodes were given in
escrow, which has left the level; those that wait, where the leader is asked; and
the counts of what clients admitted by themselves while nobody answered and have
reported since.`

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
			return a.print(answer, func(w io.Writer) { show.Inspect(w, answer) })
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
