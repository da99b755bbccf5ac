package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/grow"
)

// grown goes from three voters to five and back, again and again, with a leader killed
// in each cycle.
func grown(ctx context.Context, p place, o options, out io.Writer) error {
	config := bench.NodesConfig{Binary: p.binary, Dir: p.dir, Count: 3, Spare: 2, Args: grow.Args()}
	if o.verbose {
		config.Log = p.log
	}
	nodes, err := bench.StartNodes(config)
	if err != nil {
		return err
	}
	defer nodes.Close()
	if o.rounds == 0 {
		o.rounds = 20
	}
	r, err := grow.Run(ctx, grow.Config{Nodes: nodes, Cycles: o.rounds, Seed: o.seed, Out: out})
	if r == nil {
		return err
	}
	fmt.Fprintf(out, "%d steps, %d leaders killed: no grant for %v at most in a step, %v where the leader was killed\n",
		r.Steps, r.Kills, r.LongestGap.Round(time.Millisecond), r.LongestFailover.Round(time.Millisecond))
	if err == nil {
		fmt.Fprintf(out, "%d acknowledged leases are all there, none twice; %d debits held to G1; ", r.Leases, r.Debits)
		fmt.Fprintf(out, "%d configurations, each one change from the last\n", r.Configurations)
	}
	return err
}
