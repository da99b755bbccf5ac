// Command figures measures what three real node processes do on this machine when
// something is done to them: the gap that a killed leader leaves; whether anything
// acknowledged was lost; and what holds when a leader dies in the middle of everything,
// and while members come and go. What has a bound and is nothing of that, `quorlease
// bench all` measures.
//
//	go run ./bench/figures failover|restart|middle|powercut|grow [-rounds N] [-length D] [-seed N]
//
// It sends traffic to loopback only and ends by itself. Exit code 1 means that something
// acknowledged was lost, granted twice, or differed between nodes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench"
)

// options are the command's flags.
type options struct {
	rounds  int
	length  time.Duration
	seed    uint64
	verbose bool
}

// place is where a measure runs: with a program that was just built, and a
// directory that is removed afterwards.
type place struct {
	binary, dir string
	log         io.Writer
}

// gcPercent is what nodes, the echo and the command itself collect by.
const gcPercent = 400

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("figures", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.rounds, "rounds", 0,
		"leader kills (default 20, middle 50), restarts (3), power cuts (10) or rounds of growing (20)")
	flags.DurationVar(&o.length, "length", 3*time.Second, "length of one round")
	flags.Uint64Var(&o.seed, "seed", 1, "what the moments of the kills of middle and grow follow from")
	flags.BoolVar(&o.verbose, "v", false, "show what the nodes log")
	measures := map[string]func(context.Context, place, options, io.Writer) error{
		"failover": withNodes(failover), "restart": withNodes(restart),
		"middle": withNodes(amid), "powercut": withoutPower, "grow": grown,
	}
	if len(args) == 0 || measures[args[0]] == nil {
		return fmt.Errorf("want one of failover, restart, middle, powercut, grow; got %q", args)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	dir, err := os.MkdirTemp("", "quorlease-figures-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := bench.BuildBinary(ctx, dir)
	if err != nil {
		return err
	}
	return measures[args[0]](ctx, place{binary: binary, dir: dir, log: log}, o, out)
}
