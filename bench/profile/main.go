// Command profile shows what a grant from escrow costs a node: it runs one in this
// process, loads it from another one over loopback, and writes what pprof reads.
//
//	go run ./bench/profile [-o DIR] [-length D] [-callers N] [-unary]
//	go tool pprof -top DIR/cpu.pprof
//
// It writes cpu.pprof, allocs.pprof and mutex.pprof to DIR and says what a decision took
// of the node's processor time and memory. It ends by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/stat"
	"github.com/quorlease/quorlease/cluster"
)

// options are the command's flags.
type options struct {
	out     string
	length  time.Duration
	callers int
	unary   bool
	// load is where a node answers whom this process is to load. Empty: it is the node.
	load string
}

const (
	// gcPercent is what a node collects by.
	gcPercent = 400
	// warmup is not profiled.
	warmup = time.Second
	keys   = 100
	// One in so many bytes allocated, and waits for locks, is sampled.
	allocEvery, lockEvery = 64 << 10, 10
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("profile", flag.ContinueOnError)
	flags.StringVar(&o.out, "o", ".", "directory to write profiles to")
	flags.DurationVar(&o.length, "length", 5*time.Second, "how long to profile")
	flags.IntVar(&o.callers, "callers", 128, "how many ask at the same time")
	flags.BoolVar(&o.unary, "unary", false, "by calls rather than over a session")
	flags.StringVar(&o.load, "load", "", "load the node at this address (what the command starts itself with)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.load != "" {
		return o.generate(ctx, out)
	}
	debug.SetGCPercent(gcPercent)
	runtime.MemProfileRate = allocEvery
	dir, err := os.MkdirTemp("", "quorlease-profile-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return o.serve(ctx, dir, out)
}

// serve runs a node and profiles it under load.
func (o *options) serve(ctx context.Context, dir string, out io.Writer) (err error) {
	c := cluster.DefaultConfig()
	c.ID, c.DataDir, c.BootstrapExpect, c.Peer = "n1", dir, 1, "127.0.0.1:0"
	node, err := cluster.Open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }() //nolint:contextcheck // closing has its own time
	config := server.DefaultConfig()
	config.Node, config.Events = node, node.Events()
	api, err := server.New(config)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- api.Serve(listener) }()
	defer func() { err = errors.Join(err, api.Close(), <-served) }()
	if err := bench.ApplyLimit(ctx, listener.Addr().String(), limit()); err != nil {
		return err
	}
	return o.watch(ctx, listener.Addr().String(), out)
}

func limit() *quorleasev1.Limit {
	burst, rate, most := int64(10_000_000), int64(1_000_000), int64(keys)
	return &quorleasev1.Limit{
		Name: "load", Per: []string{"key"}, MaxKeys: &most, Lease: durationpb.New(5 * time.Second),
		OnQuorumLoss: quorleasev1.FallbackMode_OPEN_ON_LOSS,
		Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: &burst, MaxOpen: &rate,
			Rate: &quorleasev1.Rate{Amount: rate, Interval: durationpb.New(time.Second)},
		}},
	}
}

// watch has another process load the node, and writes what this one did meanwhile.
func (o *options) watch(ctx context.Context, address string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	//nolint:gosec // it is this program
	child := exec.CommandContext(ctx, self, "-load", address, "-length", o.length.String(),
		"-callers", strconv.Itoa(o.callers), "-unary="+strconv.FormatBool(o.unary))
	said, err := child.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start the load: %w", err)
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		return fmt.Errorf("start the load: %w", err)
	}
	var decided int64
	profiled := o.profile(said, &decided, out)
	return errors.Join(profiled, child.Wait())
}

// profile profiles from when the load says that it is warm until it says what it got.
func (o *options) profile(said io.Reader, decided *int64, out io.Writer) error {
	var warm string
	if _, err := fmt.Fscan(said, &warm); err != nil {
		return fmt.Errorf("hear of the load: %w", err)
	}
	cpu, err := os.Create(filepath.Join(o.out, "cpu.pprof"))
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	defer cpu.Close()
	runtime.SetMutexProfileFraction(lockEvery)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := used()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	_, err = fmt.Fscan(said, decided)
	took := used() - began
	pprof.StopCPUProfile()
	runtime.ReadMemStats(&after)
	if err != nil || *decided == 0 {
		return fmt.Errorf("hear of the load: %d decisions: %w", *decided, err)
	}
	n := float64(*decided)
	fmt.Fprintf(out, "%.0f decisions/s, %.2f us of the node's processor time, %.1f allocations and %.0f bytes each\n",
		n/o.length.Seconds(), float64(took.Nanoseconds())/1000/n,
		float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n)
	return errors.Join(o.write("allocs"), o.write("mutex"))
}

func (o *options) write(name string) error {
	file, err := os.Create(filepath.Join(o.out, name+".pprof"))
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close())
}

// used is this process's processor time.
func used() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it knows this process
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// side is the node as callers see it.
type side struct{ *link.Link }

// Asker is that of one more caller.
func (s side) Asker(int) (load.Asker, error) { return s.Link.Asker(), nil }

// CPU is not known here.
func (s side) CPU() (time.Duration, error) { return 0, load.ErrUnknown }

// generate loads a node: it says when it is warm, and then how many decisions it got.
func (o *options) generate(ctx context.Context, out io.Writer) error {
	names := make([]string, keys)
	for i := range names {
		names[i] = "key-" + strconv.Itoa(i)
	}
	l := link.New(link.Config{
		Endpoints: []string{o.load}, Stay: true, Session: !o.unary, Timeout: 5 * time.Second, Client: "bench",
		Limit: "load", Dimension: "requests", Keys: names,
	})
	defer func() { _ = l.Close() }()
	m, err := load.Run(ctx, &load.Config{
		Callers: o.callers, Keys: keys, Distribution: stat.Uniform, Timeout: 5 * time.Second, Seed: 1,
		Warmup: warmup, Length: o.length, Reason: link.Reason,
		Began: func(context.Context, time.Time) { fmt.Fprintln(out, "warm") },
	}, side{l})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, m.Granted+m.Denied)
	return nil
}
