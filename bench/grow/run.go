package grow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/check"
)

// Config says what to do to which nodes.
type Config struct {
	// Nodes are three that run, and two to spare. They are stopped at the end.
	Nodes *bench.Nodes
	// Cycles is how often to go from three voters to five and back, at least 1.
	Cycles int
	// Seed decides who goes, and at which moment of which step the leader is killed.
	Seed uint64
	// Pace is how long each of four callers waits between two leases. Default 20 ms.
	Pace time.Duration
	// Out receives a line a cycle. Nil: nothing.
	Out io.Writer
}

// Result is what was looked at.
type Result struct {
	// Steps that were made, and Kills of leaders meanwhile.
	Steps, Kills int
	// Leases that were acknowledged.
	Leases int
	// LongestGap without a grant during one step, and LongestFailover during one in
	// which the leader was killed.
	LongestGap, LongestFailover time.Duration
	// Configurations that were found in the logs.
	Configurations int
	// Debits in the logs that G1 was held to; one that is in several counts in each.
	Debits int64
}

const (
	// gapMost is how long nothing may be granted during a step.
	gapMost = 2 * time.Second
	// stepMost is how long a step may take: a learner has to keep up for ten seconds.
	stepMost = time.Minute
	// callers are the load.
	callers = 4
)

// Args are what every node is started with: snapshots often enough that who joins gets
// one, and a disk that may be nearly full.
func Args() []string {
	return []string{"--snapshot-threshold", "2000", "--trailing-logs", "10000", "--min-free-bytes", "1"}
}

// run is a cluster under load.
type run struct {
	config Config
	random *rand.Rand
	ledger *bench.Ledger
	steps  steps
	result *Result
	stop   context.CancelFunc
	loaded sync.WaitGroup
}

// begin starts the load.
func begin(ctx context.Context, config Config) (*run, error) {
	if config.Out == nil {
		config.Out = io.Discard
	}
	if config.Pace <= 0 {
		config.Pace = 20 * time.Millisecond
	}
	if err := config.Nodes.Healthy(ctx); err != nil {
		return nil, err
	}
	leader, err := config.Nodes.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if err := bench.ConfigureLedger(ctx, config.Nodes.GRPC(leader)); err != nil {
		return nil, err
	}
	ledger, err := bench.OpenLedger(config.Nodes)
	if err != nil {
		return nil, err
	}
	load, stop := context.WithCancel(ctx)
	//nolint:gosec // The moments of kills are no secret.
	r := &run{
		config: config, random: rand.New(rand.NewPCG(config.Seed, 0)), ledger: ledger, steps: steps{},
		result: &Result{}, stop: stop,
	}
	r.loaded.Go(func() { ledger.Run(load, callers, config.Pace) })
	return r, nil
}

// Run goes from three voters to five and back, again and again, kills a leader in each
// cycle, and says what was lost.
func Run(ctx context.Context, config Config) (*Result, error) {
	if config.Cycles < 1 {
		return nil, fmt.Errorf("cycles: %d is out of range 1 up", config.Cycles)
	}
	r, err := begin(ctx, config)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for i := range config.Cycles {
		if err := r.cycle(ctx); err != nil {
			return r.result, fmt.Errorf("cycle %d of seed %d: %w", i+1, config.Seed, err)
		}
		fmt.Fprintf(r.config.Out, "cycle %d: longest without a grant %s, with a leader killed %s\n", i+1,
			r.result.LongestGap.Round(time.Millisecond), r.result.LongestFailover.Round(time.Millisecond))
	}
	return r.result, r.finish(ctx)
}

func (r *run) close() {
	r.stop()
	r.loaded.Wait()
	_ = r.ledger.Close()
}

// perCycle is the number of steps of a cycle.
const perCycle = 6

// cycle is three to five to three. In one of its steps the leader is killed.
func (r *run) cycle(ctx context.Context) error {
	nodes, amid := r.config.Nodes, r.random.IntN(perCycle)
	come := nodes.Outside()
	for at, step := range []func(context.Context) error{
		func(ctx context.Context) error { return nodes.Join(ctx, come[0]) },
		func(ctx context.Context) error { return nodes.Join(ctx, come[1]) },
		func(ctx context.Context) error { return nodes.Promote(ctx, come[0]) },
		func(ctx context.Context) error { return nodes.Promote(ctx, come[1]) },
		r.leave, r.leave,
	} {
		if err := r.step(ctx, at == amid, step); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, stepMost)
	defer cancel()
	for _, i := range nodes.Outside() {
		if err := errors.Join(nodes.Gone(ctx, i), r.log(i)); err != nil {
			return err
		}
	}
	return nodes.Healthy(ctx)
}

// leave takes a member out, whoever it is.
func (r *run) leave(ctx context.Context) error {
	members := r.config.Nodes.Members()
	return r.config.Nodes.Remove(ctx, members[r.random.IntN(len(members))])
}

// step makes one step, with or without a leader that is killed meanwhile.
func (r *run) step(ctx context.Context, kill bool, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepMost)
	defer cancel()
	from := time.Now()
	killed := make(chan error, 1)
	if kill {
		after, away := r.upTo(400*time.Millisecond), 500*time.Millisecond+r.upTo(2*time.Second)
		go func() { killed <- r.kill(ctx, after, away) }()
	} else {
		killed <- nil
	}
	if err := errors.Join(step(ctx), <-killed); err != nil {
		return err
	}
	gap := r.ledger.LongestGap(from, time.Now())
	r.result.Steps++
	if kill {
		r.result.Kills++
		r.result.LongestFailover = max(r.result.LongestFailover, gap)
	} else {
		r.result.LongestGap = max(r.result.LongestGap, gap)
	}
	if gap > gapMost {
		return fmt.Errorf("nothing was granted for %s during a step, at most %s", gap, gapMost)
	}
	return nil
}

func (r *run) upTo(d time.Duration) time.Duration { return time.Duration(r.random.Int64N(int64(d))) }

// kill takes the leader away for a while.
func (r *run) kill(ctx context.Context, after, away time.Duration) error {
	rest(ctx, after)
	leader, err := r.config.Nodes.Leader(ctx)
	if err != nil {
		return err
	}
	if err := r.config.Nodes.Signal(leader, syscall.SIGKILL); err != nil {
		return err
	}
	rest(ctx, away)
	return r.config.Nodes.Start(leader)
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// finish ends the load and says what was lost (G1, G4, G9), and what the logs say.
func (r *run) finish(ctx context.Context) (err error) {
	r.stop()
	r.loaded.Wait()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	nodes := r.config.Nodes
	if err := nodes.Healthy(ctx); err != nil {
		return err
	}
	if r.result.Leases, err = r.ledger.Verify(ctx); err != nil {
		return err
	}
	if _, _, err := nodes.SameState(ctx); err != nil {
		return fmt.Errorf("G9: %w", err)
	}
	var broken []error
	for _, i := range nodes.Members() {
		if err := nodes.Stop(i, 10*time.Second); err != nil {
			return err
		}
		broken = append(broken, r.log(i))
	}
	r.result.Configurations = len(r.steps)
	return errors.Join(append(broken, r.steps.check())...)
}

// log reads the log of a node that has stopped: it is held to G1 and G2, as far back
// as it goes.
func (r *run) log(i int) error {
	nodes := r.config.Nodes
	history, err := check.Log(nodes.Data(i))
	if err != nil {
		return err
	}
	r.result.Debits += history.Takes
	if problems := history.Problems(); len(problems) > 0 {
		return fmt.Errorf("the log of %s: %s", nodes.ID(i), strings.Join(problems, "; "))
	}
	return r.steps.read(nodes.Data(i))
}
