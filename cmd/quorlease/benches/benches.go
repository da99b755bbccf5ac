// Package benches are the subcommands of `bench`.
package benches

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/bench/echo"
	"github.com/quorlease/quorlease/bench/front"
	"github.com/quorlease/quorlease/cmd/quorlease/comparing"
	"github.com/quorlease/quorlease/cmd/quorlease/contend"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/measuring"
	"github.com/quorlease/quorlease/cmd/quorlease/scaling"
	"github.com/quorlease/quorlease/cmd/quorlease/storms"
)

// App is what the root gives them. What depends on flags is asked for when a command
// runs.
type App struct {
	// CheckFormat refuses a format that is neither text nor JSON.
	CheckFormat func(more ...string) error
	// JSON says which of them it is.
	JSON func() bool
	// Write sends the answer out.
	Write func([]byte) error
	// Timeout is the longest that a call may take.
	Timeout func() time.Duration
	// Endpoints are those that the command line names, if it does.
	Endpoints func() []string
	// Tune sets the garbage collector as a node's.
	Tune    func()
	Version string
	Stderr  io.Writer
}

// Commands are all of them.
func Commands(a *App) []*cobra.Command {
	return []*cobra.Command{
		all(a), contention(a), storm(a), compare(a), scale(a), simulated(a), echoServer(a), proxyServer(a),
	}
}

// measure is one that measures, says what it came to, and then what did not hold.
type measure[R any] interface {
	Answer(ctx context.Context, asJSON bool) (answer []byte, result R, err error)
	Finish(result R) error
}

func run[R any](ctx context.Context, a *App, m measure[R]) error {
	answer, result, err := m.Answer(ctx, a.JSON())
	if err != nil {
		return err
	}
	if err := a.Write(answer); err != nil {
		return err
	}
	return m.Finish(result)
}

func all(a *App) *cobra.Command {
	o := &measuring.Options{}
	cmd := &cobra.Command{
		Use:     "all",
		Short:   "Every figure with its bound, in one table",
		Long:    measuring.Long,
		Example: measuring.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckFormat(); err != nil {
				return err
			}
			o.Timeout, o.Version, o.Progress = a.Timeout(), a.Version, a.Stderr
			if err := o.Complete(c.Flags().Changed); err != nil {
				return err
			}
			a.Tune()
			return run(c.Context(), a, o)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}

func contention(a *App) *cobra.Command {
	o := &contend.Options{}
	cmd := &cobra.Command{
		Use:     "contention",
		Short:   "Many callers, few keys, with an echo beside it",
		Long:    contend.Long,
		Example: contend.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckFormat(); err != nil {
				return err
			}
			o.Endpoints = a.Endpoints()
			o.Timeout, o.Version, o.Progress = a.Timeout(), a.Version, a.Stderr
			if err := o.Complete(c.Flags().Changed); err != nil {
				return err
			}
			a.Tune()
			return run(c.Context(), a, o)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}

func storm(a *App) *cobra.Command {
	o := &storms.Options{}
	cmd := &cobra.Command{
		Use:     "storm",
		Short:   "Retry storms, before and after, in virtual time",
		Long:    storms.Long,
		Example: storms.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckFormat(); err != nil {
				return err
			}
			o.Version, o.Progress = a.Version, a.Stderr
			return run(c.Context(), a, o)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}

func compare(a *App) *cobra.Command {
	o := &comparing.Options{}
	cmd := &cobra.Command{
		Use:     "compare",
		Short:   "Beside Redis, envoyproxy/ratelimit, Gubernator and etcd",
		Long:    comparing.Long,
		Example: comparing.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckFormat(); err != nil {
				return err
			}
			o.Timeout, o.Version, o.Progress = a.Timeout(), a.Version, a.Stderr
			if err := o.Complete(c.Flags().Changed); err != nil {
				return err
			}
			a.Tune()
			return run(c.Context(), a, o)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}

func scale(a *App) *cobra.Command {
	o := &scaling.Options{}
	cmd := &cobra.Command{
		Use:     "scale",
		Short:   "By nodes, active buckets, callers and the size of snapshots",
		Long:    scaling.Long,
		Example: scaling.Example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckFormat(); err != nil {
				return err
			}
			o.Timeout, o.Version, o.Progress = a.Timeout(), a.Version, a.Stderr
			if err := o.Complete(c.Flags().Changed); err != nil {
				return err
			}
			a.Tune()
			return run(c.Context(), a, o)
		},
	}
	o.Define(cmd.Flags())
	return cmd
}

// echoServer is the other side of the comparison, in a process of its own.
func echoServer(a *App) *cobra.Command {
	return besides(a, &cobra.Command{
		Use: "echo-server", Short: "Answer what is asked, for bench contention", Args: cobra.NoArgs,
	}, func(ctx context.Context, l net.Listener, _ []string) error { return echo.Serve(ctx, l) })
}

// proxyServer is what a gateway is compared with, in a process of its own.
func proxyServer(a *App) *cobra.Command {
	return besides(a, &cobra.Command{
		Use: "proxy-server URL", Short: "Pass on what is asked, for bench all", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, l net.Listener, args []string) error { return front.Bare(ctx, l, args[0]) })
}

// besides is a process beside what is measured: it listens on loopback, says where, and
// serves until it is told to stop.
func besides(
	a *App, cmd *cobra.Command, serve func(ctx context.Context, l net.Listener, args []string) error,
) *cobra.Command {
	cmd.Hidden = true
	cmd.RunE = func(c *cobra.Command, args []string) error {
		a.Tune()
		var config net.ListenConfig
		listener, err := config.Listen(c.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("listen on loopback: %w", err)}
		}
		if err := a.Write(fmt.Appendln(nil, listener.Addr())); err != nil {
			return errors.Join(err, listener.Close())
		}
		return serve(c.Context(), listener, args)
	}
	return cmd
}
