package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/planning"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

func newPlan(a *app) *cobra.Command {
	o := &planning.Options{}
	cmd := &cobra.Command{
		Use: planning.Use, Short: "Reckon what a limit carries: pace, headroom, time, and what if",
		Long: planning.Long, Example: planning.Example,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			answer, err := o.Answer(c.Context(), a.stdin, a.measured, a.format == formatJSON)
			if err != nil {
				return err
			}
			return a.write(answer)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}

// measured asks the nodes for what they have counted, and says who did not.
func (a *app) measured(
	ctx context.Context, request *quorleasev1.UsageBookQueryRequest,
) (*quorleasev1.UsageBookQueryResponse, error) {
	answer, err := answerOf(ctx, a, ask.Read,
		ask.CallOf(quorleasev1.NewUsageBookClient, quorleasev1.UsageBookClient.Query, request))
	if err == nil {
		show.UsageMissing(a.stderr, time.Time{}, answer)
	}
	return answer, err
}
