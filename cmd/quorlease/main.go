// Command quorlease is the one binary of Quorlease: it runs nodes, and it asks
// them.
//
// Every subcommand has a file of its own. This package decides nothing about
// limits: it reads arguments, calls the public protocol, and prints answers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	// The zones of quotas, where the system has none.
	_ "time/tzdata"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	// A hang-up counts as a wish to stop, so that a closed terminal leaves no
	// nodes behind, but not for one who started this with nohup.
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// Some time after the first signal the default handling is back: another one
	// ends a stop that takes too long. Not at once, because what runs a program for
	// somebody may send the same wish twice.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
