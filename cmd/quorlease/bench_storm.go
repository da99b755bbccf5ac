package main

import (
	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/storms"
)

func newBenchStorm(a *app) *cobra.Command {
	o := &storms.Options{}
	cmd := &cobra.Command{
		Use:     "storm",
		Short:   "Retry storms, before and after, in virtual time",
		Long:    storms.Long,
		Example: storms.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			o.Version, o.Progress = thisBuild().Version, a.stderr
			answer, result, err := o.Answer(c.Context(), a.format == formatJSON)
			if err != nil {
				return err
			}
			if err := a.write(answer); err != nil {
				return err
			}
			return o.Finish(result)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}
