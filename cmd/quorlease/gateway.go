package main

import (
	"bytes"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/forwarding"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

func newGateway(a *app) *cobra.Command {
	o, log := &forwarding.Options{}, logOptions{}
	cmd := &cobra.Command{
		Use: forwarding.Use, Short: forwarding.Short, Long: forwarding.Long, Example: forwarding.Example,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := refuseFlags(c, "which runs until it is told to stop", "timeout", "output"); err != nil {
				return err
			}
			o.Endpoints = a.endpoints
			o.EndpointsSet = setting.IsSet(c.Root().PersistentFlags().Lookup("endpoints"))
			logger, err := log.logger(a)
			if err != nil {
				return err
			}
			if err := o.Complete(c.Context()); err != nil {
				return err
			}
			if o.Check {
				var report bytes.Buffer
				if err := o.Report(&report, time.Now()); err != nil {
					return err
				}
				return a.write(report.Bytes())
			}
			tuneCollector(a.lookupEnv)
			return exitCodeOf(o.Run(c.Context(), logger))
		},
	}
	cmd.AddCommand(forwarding.ReportCommand(&a.format, &a.timeout, a.write))
	o.Define(cmd.Flags())
	log.define(cmd.Flags())
	setting.FromEnvironment(cmd.Flags())
	return cmd
}
