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

const adjustLong = `Change the level of a bucket by hand, and leave a record of who did and why.

DIM=+N adds tokens up to the burst, DIM=-N takes tokens away down to none, and
DIM=reset makes the bucket full and free of debt; reset alone does that to every
dimension of the limit, one change each. clear-block opens the key again after a
provider's block, a pause or a ramp.`

func newAdjust(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "adjust LIMIT[/KEY] DIM=+N|DIM=-N|DIM=reset|reset|clear-block --reason TEXT",
		Short: "Change the level of a bucket by hand",
		Long:  adjustLong,
		Example: `  quorlease adjust demo requests=+5 --reason "the provider gave us five more"
  quorlease adjust llm/team-a reset --reason "counted a test run"
  quorlease adjust llm clear-block --reason "the bill is paid"`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if err := argument.Reason(reason); err != nil {
				return err
			}
			t, err := argument.ParseTarget(args[0])
			if err != nil {
				return err
			}
			return a.adjust(c.Context(), t, args[1], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record: 1 to 512 bytes of `text`")
	return cmd
}

func (a *app) adjust(ctx context.Context, t argument.Target, change, reason string) error {
	request := &quorleasev1.LimitsAdjustRequest{Limit: t.Limit, Key: t.Key, Reason: reason}
	if change != "reset" {
		if err := argument.Change(request, change); err != nil {
			return err
		}
		return a.adjustOne(ctx, request)
	}
	found, err := a.inspect(ctx, &quorleasev1.LimitsInspectRequest{Limit: t.Limit, Key: t.Key})
	if err != nil {
		return err
	}
	if len(found.GetBuckets()) == 0 {
		return fmt.Errorf("%s has no level: there is nothing to reset", t)
	}
	request.Change = &quorleasev1.LimitsAdjustRequest_Reset_{Reset_: true}
	for _, bucket := range found.GetBuckets() {
		request.Dimension = bucket.GetDimension()
		if err := a.adjustOne(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) adjustOne(ctx context.Context, request *quorleasev1.LimitsAdjustRequest) error {
	// Full is full however often it is said. Adding twice is not adding once.
	kind := ask.Once
	if request.GetReset_() || request.GetClearBlock() {
		kind = ask.Repeatable
	}
	answer, err := answerOf(ctx, a, kind,
		ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.Adjust, request))
	if err != nil {
		return err
	}
	return a.print(answer, func(w io.Writer) {
		if request.GetClearBlock() {
			fmt.Fprintf(w, "cleared %s\n", argument.Target{Limit: request.GetLimit(), Key: request.GetKey()})
			return
		}
		before, after := answer.GetBefore(), answer.GetAfter()
		show.Table(w, "LIMIT KEY DIMENSION BEFORE AFTER", [][]string{{
			after.GetLimit(), after.GetKey(), after.GetDimension(),
			show.Number(before.GetTokens()), show.Number(after.GetTokens()),
		}})
	})
}
