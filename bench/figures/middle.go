package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/middle"
)

// amid kills the leader in the middle of everything that takes time.
func amid(ctx context.Context, nodes *bench.Nodes, o options, out io.Writer) error {
	if o.rounds == 0 {
		o.rounds = 50
	}
	r, err := middle.Run(ctx, middle.Config{Nodes: nodes, Rounds: o.rounds, Seed: o.seed, Out: out})
	if r == nil {
		return err
	}
	fmt.Fprintf(out, "%d kills, %d of them in the middle of all: %d leases, %d slots, %d waits and %d pauses looked at\n",
		r.Kills, r.InAll, r.Leases, r.Slots, r.Waits, r.Pauses)
	fmt.Fprintf(out, "no grant for %v at most, the longest wait %v, at most %d retries of a storm, %d debits held to G1\n",
		r.LongestGap.Round(time.Millisecond), r.LongestWait.Round(time.Millisecond), r.MostRetries, r.Debits)
	return err
}
