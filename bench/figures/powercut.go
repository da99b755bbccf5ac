package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/powercut"
)

// diskBytes is more than a node wants to be free before it writes. The image is sparse.
const diskBytes = 4 << 30

// withoutPower cuts the power of all three nodes at once under load, again and again:
// what was acknowledged is there, and all have the same state.
func withoutPower(ctx context.Context, p place, o options, out io.Writer) (err error) {
	disk, err := powercut.New(ctx, p.dir, diskBytes)
	if err != nil {
		return err
	}
	//nolint:contextcheck // it is unmounted whatever ended the run
	defer func() { err = errors.Join(err, disk.Close()) }()
	config := bench.NodesConfig{Binary: p.binary, Dir: disk.Dir(), Count: 3}
	if o.verbose {
		config.Log = p.log
	}
	nodes, err := bench.StartNodes(config)
	if err != nil {
		return err
	}
	// Before the disk goes.
	defer func() { err = errors.Join(err, nodes.Close()) }()
	ledger, err := openLedger(ctx, nodes)
	if err != nil {
		return err
	}
	defer ledger.Close()
	if o.rounds == 0 {
		o.rounds = 10
	}
	for round := range o.rounds {
		loadCtx, stopLoad := context.WithTimeout(ctx, o.length)
		loaded := make(chan struct{})
		go func() {
			defer close(loaded)
			ledger.Run(loadCtx, 16, time.Millisecond)
		}()
		<-loadCtx.Done()
		err := cut(ctx, disk, nodes)
		stopLoad()
		<-loaded
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "cut %d: ", round+1)
		if err := verify(ctx, nodes, ledger, out); err != nil {
			return err
		}
	}
	return nil
}

// cut cuts the power, ends what is left of the processes, and starts them again.
func cut(ctx context.Context, disk *powercut.Disk, nodes *bench.Nodes) error {
	if err := disk.Cut(); err != nil {
		return err
	}
	for i := range nodes.Len() {
		// One that noticed has ended by itself.
		if err := nodes.Signal(i, syscall.SIGKILL); err != nil && nodes.Pid(i) != 0 {
			return err
		}
	}
	if err := disk.Restore(ctx); err != nil {
		return err
	}
	for i := range nodes.Len() {
		if err := nodes.Start(i); err != nil {
			return err
		}
	}
	return nil
}
