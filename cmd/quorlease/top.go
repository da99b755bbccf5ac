package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/top"
)

func newTop(a *app) *cobra.Command {
	o := &top.Options{}
	cmd := &cobra.Command{
		Use:     "top",
		Short:   "Watch clients, limits, nodes and alerts in a terminal",
		Long:    top.Long,
		Example: top.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if err := o.Check(a.format == formatJSON); err != nil {
				return err
			}
			if !o.Once {
				o.Endpoints, o.Timeout, o.LookupEnv = a.endpoints, a.timeout, a.lookupEnv
				o.Input, o.Output = a.stdin, a.stdout
				return o.Run(c.Context())
			}
			answer, err := answerOf(c.Context(), a, ask.Read, o.Picture)
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) { top.Text(w, answer) })
		},
	}
	o.Define(cmd.Flags())
	return cmd
}
