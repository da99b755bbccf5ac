package middle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/check"
)

// Config says what to kill and how often.
type Config struct {
	// Nodes are three that run. Run stops them at the end.
	Nodes *bench.Nodes
	// Rounds is the number of kills, at least 1.
	Rounds int
	// Seed decides at which moment of a round the leader is killed.
	Seed uint64
	// Out receives a line a round. Nil: nothing.
	Out io.Writer
}

// Result is what was looked at, over all rounds.
type Result struct {
	// Kills that were done, and InAll how many of them found acquires waiting, leases
	// being settled, pauses being reported and a budget not yet crossed.
	Kills, InAll int
	// Leases, Slots, Waits and Pauses that were checked, as many as there were.
	Leases, Slots, Waits, Pauses int
	// MostRetries were admitted of the client that retries everything.
	MostRetries int
	// LongestGap without a grant, and LongestWait for the answer of an acquire that
	// waits at most a second.
	LongestGap, LongestWait time.Duration
	// Debits in the logs of the nodes that G1 was held to.
	Debits int64
}

// roundLimit is how long a round may take before it counts as stuck.
const roundLimit = 90 * time.Second

// Run kills the leader again and again. The error says which rounds broke what.
func Run(ctx context.Context, config Config) (*Result, error) {
	if config.Rounds < 1 {
		return nil, fmt.Errorf("rounds: %d is out of range 1 up", config.Rounds)
	}
	if config.Out == nil {
		config.Out = io.Discard
	}
	//nolint:gosec // The moments of kills are no secret.
	r := &run{config: config, random: rand.New(rand.NewPCG(config.Seed, 0)), result: &Result{}}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	var broken []error
	for i := range config.Rounds {
		if err := r.round(ctx, i); err != nil {
			broken = append(broken, fmt.Errorf("round %d of seed %d: %w", i, config.Seed, err))
			fmt.Fprintln(config.Out, broken[len(broken)-1])
		}
		if ctx.Err() != nil {
			break
		}
	}
	broken = append(broken, r.logs())
	return r.result, errors.Join(broken...)
}

type run struct {
	config   Config
	random   *rand.Rand
	result   *Result
	previous *storming
}

func (r *run) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	if err := r.config.Nodes.Healthy(ctx); err != nil {
		return err
	}
	c, err := gather(r.config.Nodes)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	for {
		// A leader that has just been elected may lose another election at once.
		err := configure(ctx, c)
		if err == nil || !bench.MayHaveHappened(err) || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// parts are what goes on in one round.
type parts struct {
	*faults
	settling *settling
	holding  *holding
	waiting  *waiting
	pausing  *pausing
	storming *storming
	loaded   sync.WaitGroup
}

// begin starts all parts. They begin nothing new once ctx has ended, and finish within
// calls.
func begin(ctx, calls context.Context, c *crowd, round string) *parts {
	f := &faults{}
	p := &parts{
		faults:   f,
		settling: &settling{faults: f, crowd: c, key: round},
		holding:  &holding{faults: f, crowd: c, key: round},
		waiting:  &waiting{faults: f, crowd: c, key: round},
		pausing:  &pausing{faults: f, crowd: c, key: round},
		storming: &storming{faults: f, crowd: c, client: stormClients + round},
	}
	for _, work := range []func(ctx, calls context.Context){
		p.settling.run, p.holding.run, p.waiting.run, p.pausing.run, p.storming.run,
	} {
		p.loaded.Go(func() { work(ctx, calls) })
	}
	return p
}

// round is one kill.
func (r *run) round(ctx context.Context, number int) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	if err := r.config.Nodes.Healthy(ctx); err != nil {
		return err
	}
	c, err := gather(r.config.Nodes)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	load, stop := context.WithCancel(ctx)
	defer stop()
	p := begin(load, ctx, c, fmt.Sprintf("round-%d", number))
	gap, err := r.kill(ctx, p)
	if err == nil {
		// It goes on until everybody has heard of the storm.
		for pause(ctx, 300*time.Millisecond) && !p.storming.over() {
		}
	}
	stop()
	p.loaded.Wait()
	p.storming.join()
	if err != nil {
		return errors.Join(err, p.err())
	}
	return r.check(ctx, p, gap)
}

// kill kills the leader once the storm has come a random part of the way, and starts it
// again when another has granted something.
func (r *run) kill(ctx context.Context, p *parts) (time.Duration, error) {
	leader, err := r.config.Nodes.Leader(ctx)
	if err != nil {
		return 0, err
	}
	pause(ctx, 200*time.Millisecond)
	from := 5 + r.random.Int64N(ruleAdmits-10)
	for p.storming.busy() < from && !p.storming.over() && pause(ctx, time.Millisecond) {
	}
	p.pausing.hurry.Store(true)
	for i := 0; i < 50 && min(p.settling.busy(), p.pausing.busy()) == 0; i++ {
		pause(ctx, time.Millisecond)
	}
	under := []int64{p.settling.busy(), p.holding.busy(), p.waiting.busy(), p.pausing.busy(), p.storming.busy()}
	p.storming.burst(ctx)
	// None of the burst has been granted then, or all, or it is in the middle of it.
	pause(ctx, time.Duration(r.random.Int64N(int64(30*time.Millisecond))))
	killed := time.Now()
	if err := r.config.Nodes.Signal(leader, syscall.SIGKILL); err != nil {
		return 0, err
	}
	p.pausing.hurry.Store(false)
	r.result.Kills++
	if min(under[0], under[2], under[3]) > 0 && under[4] < ruleAdmits {
		r.result.InAll++
	}
	for {
		if first, ok := p.settling.grantedAfter(killed); ok {
			gap := first.Sub(killed)
			fmt.Fprintf(r.config.Out, "kill %d amid %d settling, %d slots, %d waiting, %d reports, %d retries: ",
				r.result.Kills, under[0], under[1], under[2], under[3], under[4])
			fmt.Fprintf(r.config.Out, "grants again after %v\n", gap.Round(time.Millisecond))
			r.result.LongestGap = max(r.result.LongestGap, gap)
			return gap, r.config.Nodes.Start(leader)
		}
		if !pause(ctx, 10*time.Millisecond) {
			return 0, errors.Join(errors.New("no grant after the kill"), r.config.Nodes.Start(leader))
		}
	}
}

// check asks what still holds, over connections that have seen nothing.
func (r *run) check(ctx context.Context, p *parts, gap time.Duration) error {
	if err := r.config.Nodes.Healthy(ctx); err != nil {
		return errors.Join(err, p.err())
	}
	if _, _, err := r.config.Nodes.SameState(ctx); err != nil {
		p.add("G9: %v", err)
	}
	c, err := gather(r.config.Nodes)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	r.result.Leases += p.settling.check(ctx, c)
	r.result.Slots += p.holding.check(ctx, c)
	r.result.Waits += p.waiting.check(gap)
	r.result.Pauses += p.pausing.check(ctx, c)
	r.result.MostRetries = max(r.result.MostRetries, p.storming.check(ctx, c))
	r.result.LongestWait = max(r.result.LongestWait, p.waiting.longest)
	if r.previous != nil {
		// The last round's is over its budget still: the window is minutes long.
		r.previous.faults = p.faults
		r.previous.check(ctx, c)
	}
	r.previous = p.storming
	return p.err()
}

// logs stops the nodes and holds what each has written to G1 and G2.
func (r *run) logs() error {
	nodes := r.config.Nodes
	var broken []error
	for i := range nodes.Len() {
		if err := nodes.Stop(i, 10*time.Second); err != nil {
			broken = append(broken, err)
			continue
		}
		history, err := check.Log(nodes.Data(i))
		if err != nil {
			broken = append(broken, err)
			continue
		}
		r.result.Debits = max(r.result.Debits, history.Takes)
		for _, line := range history.Problems() {
			broken = append(broken, fmt.Errorf("the log of %s: %s", nodes.ID(i), line))
		}
	}
	return errors.Join(broken...)
}
