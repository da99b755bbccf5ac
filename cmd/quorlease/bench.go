package main

import (
	"bytes"
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

const contentionLong = `Let many callers ask for the same few keys, beside a bare gRPC echo in
interleaved rounds, and check afterwards that the bounds held: G1 by the log of
a node that was stopped, G1 and G2 by the clients' clock.

It starts three node processes of this program in a temporary directory, and
ends them. With --endpoints on the command line (the environment does not count
here) it measures the cluster that is there: with a limit of its own, which it
deletes in the end, and without doing anything to the nodes.

Without flags it takes less than a minute. Progress goes to standard error.
Exit code 1 means that a guarantee broke or that a bound was missed.`

const contentionExample = `  quorlease bench contention
  quorlease bench contention --path unary --distribution hot --max-p99 20ms
  quorlease bench contention --rate 5000 --length 20s --html page.html
  quorlease bench contention --kill-leader-every 5s --length 30s -o json`

func newBenchContention(a *app) *cobra.Command {
	o := &contend.Options{}
	cmd := &cobra.Command{
		Use:     "contention",
		Short:   "Many callers, few keys, with an echo beside it",
		Long:    contentionLong,
		Example: contentionExample,
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
			result, err := o.Run(c.Context())
			if err != nil {
				return err
			}
			var out bytes.Buffer
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
			if err := o.Page(result); err != nil {
				return err
			}
			return contend.Failed(result)
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
