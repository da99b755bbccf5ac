package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench"
)

// withNodes runs a measure on three nodes.
func withNodes(
	measure func(context.Context, *bench.Nodes, options, io.Writer) error,
) func(context.Context, place, options, io.Writer) error {
	return func(ctx context.Context, p place, o options, out io.Writer) error {
		config := bench.NodesConfig{Binary: p.binary, Dir: p.dir, Count: 3}
		if o.verbose {
			config.Log = p.log
		}
		nodes, err := bench.StartNodes(config)
		if err != nil {
			return err
		}
		defer nodes.Close()
		return measure(ctx, nodes, o, out)
	}
}

// failover kills the leader under load, again and again.
func failover(ctx context.Context, nodes *bench.Nodes, o options, out io.Writer) error {
	ledger, err := openLedger(ctx, nodes)
	if err != nil {
		return err
	}
	defer ledger.Close()
	if o.rounds == 0 {
		o.rounds = 20
	}
	loadCtx, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		ledger.Run(loadCtx, 16, 2*time.Millisecond)
	}()
	var gaps []time.Duration
	for round := range o.rounds {
		gap, err := killLeader(ctx, nodes, ledger)
		if err != nil {
			return fmt.Errorf("kill %d: %w", round+1, err)
		}
		fmt.Fprintf(out, "kill %d: grants again after %v\n", round+1, gap.Round(time.Millisecond))
		gaps = append(gaps, gap)
	}
	stopLoad()
	<-loaded
	slices.Sort(gaps)
	fmt.Fprintf(out, "%d kills: median %v, max %v\n", len(gaps),
		gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond))
	return verify(ctx, nodes, ledger, out)
}

func openLedger(ctx context.Context, nodes *bench.Nodes) (*bench.Ledger, error) {
	leader, err := nodes.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if err := bench.ConfigureLedger(ctx, nodes.GRPC(leader)); err != nil {
		return nil, err
	}
	return bench.OpenLedger(nodes)
}

// killLeader waits for health, kills the leader, measures the gap and starts
// the node again.
func killLeader(ctx context.Context, nodes *bench.Nodes, ledger *bench.Ledger) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := nodes.Healthy(ctx); err != nil {
		return 0, err
	}
	leader, err := nodes.Leader(ctx)
	if err != nil {
		return 0, err
	}
	killed := time.Now()
	if err := nodes.Signal(leader, syscall.SIGKILL); err != nil {
		return 0, err
	}
	first, err := firstGrant(ctx, ledger, killed)
	if err != nil {
		return 0, err
	}
	return first.Sub(killed), nodes.Start(leader)
}

func firstGrant(ctx context.Context, ledger *bench.Ledger, killed time.Time) (time.Time, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if first, ok := ledger.FirstGrantAfter(killed); ok {
			return first, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("no grant after the kill: %w", ctx.Err())
		}
	}
}

// restart kills all nodes at once and starts them again.
func restart(ctx context.Context, nodes *bench.Nodes, o options, out io.Writer) error {
	ledger, err := openLedger(ctx, nodes)
	if err != nil {
		return err
	}
	defer ledger.Close()
	if o.rounds == 0 {
		o.rounds = 3
	}
	for range o.rounds {
		loadCtx, stopLoad := context.WithTimeout(ctx, o.length)
		loaded := make(chan struct{})
		go func() {
			defer close(loaded)
			ledger.Run(loadCtx, 16, time.Millisecond)
		}()
		<-loadCtx.Done()
		for i := range nodes.Len() {
			if err := nodes.Signal(i, syscall.SIGKILL); err != nil {
				stopLoad()
				return err
			}
		}
		stopLoad()
		<-loaded
		for i := range nodes.Len() {
			if err := nodes.Start(i); err != nil {
				return err
			}
		}
		if err := verify(ctx, nodes, ledger, out); err != nil {
			return err
		}
	}
	return nil
}

// verify fails at once where a node has ended: waiting for it would be in vain.
func verify(ctx context.Context, nodes *bench.Nodes, ledger *bench.Ledger, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ctx, stop := whileAllRun(ctx, nodes)
	defer stop()
	err := verifyRunning(ctx, nodes, ledger, out)
	// Only the end of a process has a cause of its own.
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, ctx.Err()) {
		return cause
	}
	return err
}

// whileAllRun returns a context that ends when the process of a member has. stop waits for
// who watches them.
func whileAllRun(ctx context.Context, nodes *bench.Nodes) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, i := range nodes.Members() {
				if nodes.Pid(i) == 0 {
					cancel(fmt.Errorf("node %s has ended by itself (-v shows what it said)", nodes.ID(i)))
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

func verifyRunning(ctx context.Context, nodes *bench.Nodes, ledger *bench.Ledger, out io.Writer) error {
	if err := nodes.Healthy(ctx); err != nil {
		return err
	}
	leases, err := ledger.Verify(ctx)
	if err != nil {
		return err
	}
	index, hash, err := nodes.SameState(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d acknowledged leases are all there, none twice; all nodes have state %s at entry %d\n",
		leases, hash, index)
	return nil
}
