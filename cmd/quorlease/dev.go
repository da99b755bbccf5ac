package main

import (
	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/alarm"
	"github.com/quorlease/quorlease/cmd/quorlease/dev"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

const devLong = `Run a whole cluster on this machine: one child process a node, so that each can
be killed. It is ready when there is a leader, prints what to type next, and
stops everything on Ctrl-C.

A node that ends stays away, so that its absence can be looked at; --restart
brings it back. Without --data everything is forgotten at the end.`

func newDev(a *app) *cobra.Command {
	o := dev.Options{Stdout: a.stdout, Stderr: a.stderr, Endpoints: defaultEndpoints}
	var limits string
	var alerts alarm.Targets
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run three nodes on this machine",
		Long:  devLong,
		Example: `  quorlease dev
  quorlease dev --data ./cluster --limits limits.yaml --restart
  quorlease dev --nodes 1 --grpc-port 0 --peer-port 0 --http-port 0`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := refuseClientFlags(c); err != nil {
				return err
			}
			if _, err := (&logOptions{level: o.LogLevel}).parse(); err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			if _, err := alerts.Sinks(); err != nil {
				return err
			}
			o.Environment = alerts.Environment()
			// Read before any node starts, so that a mistake in the file costs
			// nothing.
			if limits != "" {
				request, err := a.readLimits(limits)
				if err != nil {
					return err
				}
				o.Limits = request
			}
			return dev.Run(c.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Nodes, "nodes", 3, "how `many` nodes, 1 to 9")
	flags.StringVar(&o.Data, "data", "", "keep the nodes' data in this `directory`; without it in a temporary one")
	flags.StringVar(&limits, "limits", "", "limits `file` to apply; without it a sample, where there are none")
	flags.BoolVar(&o.Restart, "restart", false, "start a node again that has ended")
	flags.IntVar(&o.GRPCPort, "grpc-port", 7101,
		"client `port` of the first node, the next ones follow; 0 takes free ones")
	flags.IntVar(&o.PeerPort, "peer-port", 7201, "peer `port` of the first node; 0 takes free ones")
	flags.IntVar(&o.HTTPPort, "http-port", 7301, "HTTP `port` of the first node; 0 takes free ones")
	flags.IntVar(&o.RaftMultiplier, "raft-multiplier", 1, "scale the election timers by this `number`, 1 to 20")
	flags.StringVar(&o.LogLevel, "log-level", "warn", "what the nodes log: trace, debug, info, warn or error")
	alerts.Define(flags)
	setting.FromEnvironment(flags)
	setting.Range(flags, "nodes", "1 to 9")
	setting.Range(flags, "raft-multiplier", "1 to 20")
	for _, port := range []string{"grpc-port", "peer-port", "http-port"} {
		setting.Range(flags, port, "0 to 65535")
	}
	return cmd
}
