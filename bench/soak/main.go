// Command soak loses leaders and quorums for a long time, and counts who was told:
// of an ordinary election nobody, of a lost quorum everybody once, in time, and
// once that it is back.
//
//	go run ./bench/soak [-kills 200] [-losses 50]
//
// It sends traffic to loopback only and ends by itself. Exit code 1 means that an
// alert was missing, was late or was one too many, or that a call failed.
package main

import (
	"context"
	"errors"
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

// Bounds. A node counts what a peer said for 750 ms: then a loss can be seen.
const (
	detectable  = 750 * time.Millisecond
	alertWithin = time.Second
	backWithin  = 2 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(log)
	kills := flags.Int("kills", 200, "leaders to kill")
	losses := flags.Int("losses", 50, "times to lose the quorum")
	verbose := flags.Bool("v", false, "show what the nodes log")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "quorlease-soak-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := bench.BuildBinary(ctx, dir)
	if err != nil {
		return err
	}
	s, err := begin(ctx, binary, dir, *verbose, log)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.killLeaders(ctx, *kills, out); err != nil {
		return err
	}
	return errors.Join(s.loseQuorums(ctx, *losses, out), s.calls.verdict(out))
}

// soak is a cluster, a client that calls it, and what both were told.
type soak struct {
	nodes *bench.Nodes
	inbox *inbox
	calls *calls
}

func begin(ctx context.Context, binary, dir string, verbose bool, log io.Writer) (*soak, error) {
	s := &soak{inbox: newInbox()}
	config := bench.NodesConfig{
		Binary: binary, Dir: dir, Count: 3, Args: []string{"--alert-webhook", s.inbox.url()},
	}
	if verbose {
		config.Log = log
	}
	var err error
	if s.nodes, err = bench.StartNodes(config); err != nil {
		s.close()
		return nil, err
	}
	if err := s.nodes.Healthy(ctx); err != nil {
		s.close()
		return nil, err
	}
	burst := int64(1) << 30
	err = bench.ApplyLimit(ctx, s.nodes.GRPC(0), &quorleasev1.Limit{
		Name: "soak", Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: &burst,
			Rate: &quorleasev1.Rate{Amount: 1_000_000, Interval: durationpb.New(time.Second)},
		}},
	})
	if err == nil {
		s.calls, err = startCalls(s.nodes, s.inbox)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *soak) close() {
	if s.calls != nil {
		s.calls.close()
	}
	if s.nodes != nil {
		_ = s.nodes.Close()
	}
	s.inbox.close()
}

// killLeaders is phase one: nobody is told of elections.
func (s *soak) killLeaders(ctx context.Context, times int, out io.Writer) error {
	for i := range times {
		leader, err := s.nodes.Leader(ctx)
		if err != nil {
			return err
		}
		if err := s.nodes.Signal(leader, syscall.SIGKILL); err != nil {
			return err
		}
		killed := time.Now()
		if err := s.decides(ctx); err != nil {
			return err
		}
		gap := time.Since(killed)
		if err := s.restart(ctx, leader); err != nil {
			return err
		}
		fmt.Fprintf(out, "kill %d: decided again after %s, alerts %d\n", i+1, gap.Round(time.Millisecond), s.inbox.len())
	}
	if n := s.inbox.len(); n != 0 {
		return fmt.Errorf("%d alerts in %d leader kills, want none: %v", n, times, s.inbox.take())
	}
	fmt.Fprintf(out, "%d leader kills, no alert\n", times)
	return nil
}

func (s *soak) restart(ctx context.Context, which ...int) error {
	for _, i := range which {
		if err := s.nodes.Start(i); err != nil {
			return err
		}
	}
	return s.nodes.Healthy(ctx)
}

// decides waits until the authority decides: by consensus, not by anybody's
// memory.
func (s *soak) decides(ctx context.Context) error {
	for {
		for i := range s.nodes.Len() {
			if s.nodes.Pid(i) != 0 && s.decidedBy(ctx, i) {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *soak) decidedBy(ctx context.Context, i int) bool {
	conn, err := bench.Dial(s.nodes.GRPC(i))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = quorleasev1.NewAdmissionClient(conn).Acquire(ctx, &quorleasev1.AcquireRequest{
		Client: "soak-check", Charges: []*quorleasev1.Charge{{Limit: "soak", Dimension: "requests", Amount: 1}},
	})
	return err == nil
}

// loseQuorums is phase two: the client and the survivor are told once, in time,
// and once that it is over.
func (s *soak) loseQuorums(ctx context.Context, times int, out io.Writer) error {
	var worst [4]time.Duration
	var problems []error
	for i := range times {
		took, err := s.loseQuorum(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("loss %d: %w", i+1, err))
			fmt.Fprintf(out, "loss %d: %v\n", i+1, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		for k, d := range took {
			worst[k] = max(worst[k], d)
		}
		fmt.Fprintf(out, "loss %d: the node told after %s, the client after %s; over: the node %s, the client %s\n",
			i+1, took[0], took[1], took[2], took[3])
	}
	fmt.Fprintf(out, "%d of %d quorum losses alerted and resolved in time\n", times-len(problems), times)
	fmt.Fprintf(out, "at the latest the node told after %s, the client after %s; over: the node %s, the client %s\n",
		worst[0], worst[1], worst[2], worst[3])
	return errors.Join(problems...)
}

// loseQuorum kills two nodes and starts them again. It returns how long after the
// second kill the node and the client told of it, and how long after the authority
// decided again they told that.
func (s *soak) loseQuorum(ctx context.Context) ([4]time.Duration, error) {
	var took [4]time.Duration
	leader, err := s.nodes.Leader(ctx)
	if err != nil {
		return took, err
	}
	gone := []int{leader, (leader + 1) % s.nodes.Len()}
	s.inbox.take()
	for _, i := range gone {
		if err := s.nodes.Signal(i, syscall.SIGKILL); err != nil {
			return took, err
		}
	}
	killed := time.Now()
	if err := s.told(ctx, 5*time.Second, "QuorumLost firing", "FailOpenStarted firing"); err != nil {
		return took, errors.Join(err, s.restart(ctx, gone...))
	}
	lost := s.inbox.take()
	for _, i := range gone {
		if err := s.nodes.Start(i); err != nil {
			return took, err
		}
	}
	if err := s.decides(ctx); err != nil {
		return took, err
	}
	back := time.Now()
	err = s.told(ctx, 5*time.Second, "QuorumLost resolved", "FailOpenStarted resolved")
	over := s.inbox.take()
	if err := errors.Join(err, s.nodes.Healthy(ctx)); err != nil {
		return took, err
	}
	took = [4]time.Duration{
		lost["QuorumLost firing"].Sub(killed), lost["FailOpenStarted firing"].Sub(killed),
		over["QuorumLost resolved"].Sub(back), over["FailOpenStarted resolved"].Sub(back),
	}
	for k := range took {
		took[k] = took[k].Round(time.Millisecond)
	}
	if worst := max(took[0], took[1]); worst > detectable+alertWithin {
		return took, fmt.Errorf("told %s after the kill, want within %s", worst, detectable+alertWithin)
	}
	if worst := max(took[2], took[3]); worst > backWithin {
		return took, fmt.Errorf("told that it is over %s after it was, want within %s", worst, backWithin)
	}
	return took, nil
}

// told waits until each of the alerts has come, once, and nothing else.
func (s *soak) told(ctx context.Context, within time.Duration, want ...string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		got, twice := s.inbox.names()
		missing := slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
		switch {
		case twice || len(got) > len(want):
			return fmt.Errorf("told %q, want %q once each", got, want)
		case !missing:
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("told %q within %s, want %q", got, within, want)
		}
	}
}
