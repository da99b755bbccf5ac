package main

import (
	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/examine"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

func newDoctor(a *app) *cobra.Command {
	o := &examine.Options{}
	cmd := &cobra.Command{
		Use: "doctor -f FILE", Short: "Look through a limits file for what goes wrong later",
		Long: examine.Long, Example: examine.Example,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			answer, found, err := o.Answer(a.stdin, a.format == formatJSON)
			if err != nil {
				return err
			}
			if err := a.write(answer); err != nil {
				return &exit.Error{Code: exit.Usage, Err: err}
			}
			if found {
				return &exit.Error{Code: exit.Failed}
			}
			return nil
		},
	}
	o.Define(cmd.Flags())
	return cmd
}
