package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

func newLimits(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Configure and show limits and retry budgets",
		Long: `Configure and show limits and retry budgets. Every change is one change or none,
and gets a revision of its own.`,
	}
	cmd.AddCommand(
		newLimitsApply(a), newLimitsGet(a), newLimitsDiff(a), newLimitsValidate(a),
		newLimitsDelete(a), newLimitsHistory(a), newLimitsRollback(a),
	)
	return cmd
}

func newLimitsGet(a *app) *cobra.Command {
	request := &quorleasev1.LimitsListRequest{}
	cmd := &cobra.Command{
		Use:   "get [NAME]",
		Short: "Show the limits, complete with their defaults",
		Long: `Show one limit or retry budget, or all of them, complete with their defaults.
With -o yaml the answer is a limits file.`,
		Example: `  quorlease limits get
  quorlease limits get demo -o yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(formatYAML); err != nil {
				return err
			}
			if len(args) == 1 {
				if err := argument.LimitName(args[0]); err != nil {
					return err
				}
				request.Name = args[0]
			}
			answer, err := a.listLimits(c.Context(), request)
			if err != nil {
				return err
			}
			if a.format == formatYAML {
				return a.write(fileOf(answer))
			}
			return a.print(answer, func(w io.Writer) { show.Limits(w, answer) })
		},
	}
	cmd.Flags().BoolVar(&request.Stale, "stale", false, "answer from the node's own replica, which may lag")
	return cmd
}

func (a *app) listLimits(
	ctx context.Context, request *quorleasev1.LimitsListRequest,
) (*quorleasev1.LimitsListResponse, error) {
	return answerOf(ctx, a, ask.Read,
		ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.List, request))
}

func newLimitsDelete(a *app) *cobra.Command {
	var revision uint64
	request := &quorleasev1.LimitsDeleteRequest{}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a limit or a retry budget",
		Long: `Delete a limit or a retry budget. What was spent is remembered for as long as it
matters: a limit that comes back is not full again.`,
		Example: `  quorlease limits delete demo`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if err := argument.LimitName(args[0]); err != nil {
				return err
			}
			request.Name = args[0]
			if c.Flags().Changed("revision") {
				request.ExpectedRevision = &revision
			}
			answer, err := answerOf(c.Context(), a, ask.Once,
				ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.Delete, request))
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) {
				fmt.Fprintf(w, "deleted %s, revision %d\n", request.Name, answer.GetRevision())
			})
		},
	}
	cmd.Flags().Uint64Var(&revision, "revision", 0, "refuse unless this is the `revision` now")
	return cmd
}

func newLimitsHistory(a *app) *cobra.Command {
	request := &quorleasev1.LimitsHistoryRequest{}
	cmd := &cobra.Command{
		Use:     "history",
		Short:   "Show the changes of the limits, newest first",
		Example: `  quorlease limits history --top 5`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			answer, err := a.history(c.Context(), request)
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) { show.History(w, answer) })
		},
	}
	cmd.Flags().Uint32Var(&request.Limit, "top", 0, "show at most this `many`; 0 is all that is kept")
	cmd.Flags().BoolVar(&request.Stale, "stale", false, "answer from the node's own replica, which may lag")
	return cmd
}

func (a *app) history(
	ctx context.Context, request *quorleasev1.LimitsHistoryRequest,
) (*quorleasev1.LimitsHistoryResponse, error) {
	return answerOf(ctx, a, ask.Read,
		ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.History, request))
}
