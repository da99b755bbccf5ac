package main

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/bench/echo"
	"github.com/quorlease/quorlease/cmd/quorlease/contend"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

func newBench(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure, break and check a cluster"}
	cmd.AddCommand(newBenchContention(a), newBenchStorm(a), newBenchEcho(a))
	return cmd
}

func newBenchContention(a *app) *cobra.Command {
	o := &contend.Options{}
	cmd := &cobra.Command{
		Use:     "contention",
		Short:   "Many callers, few keys, with an echo beside it",
		Long:    contend.Long,
		Example: contend.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if c.Root().PersistentFlags().Lookup("endpoints").Changed {
				o.Endpoints = a.endpoints
			}
			o.Timeout, o.Version, o.Progress = a.timeout, thisBuild().Version, a.stderr
			if err := o.Complete(c.Flags().Changed); err != nil {
				return err
			}
			tuneCollector(os.LookupEnv)
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

// newBenchEcho is the other side of the comparison, in a process of its own.
func newBenchEcho(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "echo-server",
		Short:  "Answer what is asked, for bench contention",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			tuneCollector(os.LookupEnv)
			var config net.ListenConfig
			listener, err := config.Listen(c.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("listen on loopback: %w", err)}
			}
			if err := a.write(fmt.Appendln(nil, listener.Addr())); err != nil {
				return err
			}
			return echo.Serve(c.Context(), listener)
		},
	}
}
