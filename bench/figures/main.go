// Command figures measures what three real node processes do on this machine:
// throughput of one stream, the gap that a killed leader leaves, and whether
// anything acknowledged was lost.
//
//	go run ./bench/figures throughput|failover|restart [-rounds N] [-length D]
//
// It sends traffic to loopback only and ends by itself. Exit code 1 means that
// something acknowledged was lost, granted twice, or differed between nodes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
)

// options are the command's flags.
type options struct {
	rounds  int
	length  time.Duration
	callers int
	keys    int
	verbose bool
}

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
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of throughput (default 5) or leader kills (default 20)")
	flags.DurationVar(&o.length, "length", 5*time.Second, "length of one round of throughput")
	flags.IntVar(&o.callers, "callers", 128, "concurrent callers of one stream")
	flags.IntVar(&o.keys, "keys", 100, "keys")
	flags.BoolVar(&o.verbose, "v", false, "show what the nodes log")
	measures := map[string]func(context.Context, *bench.Nodes, options, io.Writer) error{
		"throughput": throughput, "failover": failover, "restart": restart,
	}
	if len(args) == 0 || measures[args[0]] == nil {
		return fmt.Errorf("want one of throughput, failover, restart; got %q", args)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
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
	config := bench.NodesConfig{Binary: binary, Dir: dir, Count: 3}
	if o.verbose {
		config.Log = log
	}
	nodes, err := bench.StartNodes(config)
	if err != nil {
		return err
	}
	defer nodes.Close()
	return measures[args[0]](ctx, nodes, o, out)
}

// throughput loads the leader over one stream.
func throughput(ctx context.Context, nodes *bench.Nodes, o options, out io.Writer) error {
	leader, err := nodes.Leader(ctx)
	if err != nil {
		return err
	}
	burst := int64(1) << 32
	err = bench.ApplyLimit(ctx, nodes.GRPC(leader), &quorleasev1.Limit{
		Name: "hot", Per: []string{"key"},
		Dimensions: []*quorleasev1.Dimension{{
			Name:  "requests",
			Rate:  &quorleasev1.Rate{Amount: 100, Interval: durationpb.New(time.Second)},
			Burst: &burst,
		}},
	})
	if err != nil {
		return err
	}
	if o.rounds == 0 {
		o.rounds = 5
	}
	var perSecond []float64
	for round := range o.rounds {
		before, err := cpuOfAll(nodes)
		if err != nil {
			return err
		}
		result, err := bench.RunLoad(ctx, bench.LoadConfig{
			Address: nodes.GRPC(leader), Limit: "hot", Callers: o.callers, Keys: o.keys,
			Warmup: time.Second, Length: o.length,
		})
		if err != nil {
			return err
		}
		after, err := cpuOfAll(nodes)
		if err != nil {
			return err
		}
		// The processor time covers the warm-up too; the rate is taken for the same in both.
		decided := result.GrantsPerSecond() * (o.length + time.Second).Seconds()
		fmt.Fprintf(out, "round %d: %v; %.1f us of processor time a decision on all nodes\n",
			round+1, result, float64((after-before).Microseconds())/decided)
		perSecond = append(perSecond, result.GrantsPerSecond())
	}
	slices.Sort(perSecond)
	fmt.Fprintf(out, "median %.0f grants/s of %d rounds (min %.0f, max %.0f), %d callers on one stream, %d keys\n",
		perSecond[len(perSecond)/2], o.rounds, perSecond[0], perSecond[len(perSecond)-1], o.callers, o.keys)
	return nil
}

// cpuOfAll is the processor time of all nodes together.
func cpuOfAll(nodes *bench.Nodes) (time.Duration, error) {
	var sum time.Duration
	for i := range nodes.Len() {
		used, err := nodes.CPU(i)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
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

func verify(ctx context.Context, nodes *bench.Nodes, ledger *bench.Ledger, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
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
