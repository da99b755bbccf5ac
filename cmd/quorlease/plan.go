package main

import (
	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/planning"
)

func newPlan(a *app) *cobra.Command {
	o := &planning.Options{}
	cmd := &cobra.Command{
		Use: planning.Use, Short: "Reckon what a limit carries: pace, headroom, time, and what if",
		Long: planning.Long, Example: planning.Example,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			answer, err := o.Answer(a.stdin, a.format == formatJSON)
			if err != nil {
				return err
			}
			return a.write(answer)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}
