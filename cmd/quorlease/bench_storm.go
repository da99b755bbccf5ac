package main

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/storms"
)

const stormLong = `Replay three incidents as numbers, each as it was and as it is with Quorlease:
a batch job whose retries took a shared quota down, forty instances that tried
again on one cadence, and a nightly backfill that made 137 attempts for a task.

Everything happens in virtual time and follows from the seed. What decides is
the real state machine, the real queue and the real retry counters; clients,
gateways and providers are played. Each figure has the range that an independent
simulation found: exit code 1 means that one is outside.

It takes less than two minutes. Progress goes to standard error.`

const stormExample = `  quorlease bench storm
  quorlease bench storm --list
  quorlease bench storm --scenario s3-after --seed 7
  quorlease bench storm --html page.html -o json`

func newBenchStorm(a *app) *cobra.Command {
	o := &storms.Options{}
	cmd := &cobra.Command{
		Use:     "storm",
		Short:   "Retry storms, before and after, in virtual time",
		Long:    stormLong,
		Example: stormExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			var out bytes.Buffer
			if o.List {
				if err := storms.Names(&out); err != nil {
					return err
				}
				return a.write(out.Bytes())
			}
			o.Version, o.Progress = thisBuild().Version, a.stderr
			result, err := o.Run(c.Context())
			if err != nil {
				return err
			}
			show := result.Text
			if a.format == formatJSON {
				show = result.JSON
			}
			if err := show(&out); err != nil {
				return err
			}
			if err := a.write(out.Bytes()); err != nil {
				return err
			}
			if err := o.Files(result); err != nil {
				return err
			}
			return storms.Failed(result)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}
