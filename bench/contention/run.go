package contention

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/tally"
)

const (
	// formWait is how long three processes may take to form a cluster.
	formWait = 30 * time.Second
	// tallySpare is the time beside the rounds that grants are noted in.
	tallySpare = 2 * time.Minute
	// limitLease is the life of a lease of the limit.
	limitLease = 5 * time.Second
)

// run is one under way.
type run struct {
	config    *Config
	endpoints []string
	nodes     *bench.Nodes
	saboteur  *saboteur
	authority *authority
	echo      *echoSide
	tally     *tally.Tally
	result    *report.Result
}

// Run measures, checks, and ends every process that it started. A guarantee that
// broke is in the result and no error.
func Run(ctx context.Context, c Config) (result *report.Result, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &run{config: &c, endpoints: c.Endpoints, result: &report.Result{
		Version: c.Version, Failures: map[string]int64{}, Faults: []report.Fault{},
		Checks: []report.Check{}, Bounds: []report.Bound{},
	}}
	defer func() { err = errors.Join(err, r.close()) }() //nolint:contextcheck // ending has its own time
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	r.settings()
	for n := range c.Rounds {
		if err := r.round(ctx, n); err != nil {
			return nil, fmt.Errorf("round %d: %w", n+1, err)
		}
	}
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	r.result.Sum()
	return r.result, nil
}

func (r *run) say(format string, values ...any) {
	if r.config.Progress != nil {
		fmt.Fprintf(r.config.Progress, format+"\n", values...)
	}
}

// open starts the processes, applies the limit and connects.
func (r *run) open(ctx context.Context) error {
	c := r.config
	if len(c.Endpoints) == 0 {
		r.say("starting %d nodes", Nodes)
		if err := r.startNodes(ctx); err != nil {
			return err
		}
	}
	if err := r.configure(ctx); err != nil {
		return err
	}
	if c.Echo {
		var err error
		if r.echo, err = startEcho(ctx, c); err != nil {
			return err
		}
	}
	var err error
	r.authority, err = newAuthority(c, r.endpoints) //nolint:contextcheck // it is closed, not cancelled
	if err != nil {
		return err
	}
	r.authority.nodes, r.authority.steady = r.nodes, !c.Faults.Any()
	sides := time.Duration(2)
	r.tally = tally.New(tally.Bucket{
		Limit: limitName, Dimension: dimension, Rate: c.LimitRate, Interval: time.Second, Burst: c.LimitBurst,
		Escrow: !c.Exact,
	}, keyNames(c.Keys), sides*time.Duration(c.Rounds)*(c.Warmup+c.Length)+tallySpare)
	return nil
}

func (r *run) startNodes(ctx context.Context) error {
	nodes, err := bench.StartNodes(bench.NodesConfig{
		Binary: r.config.Binary, Dir: r.config.Dir, Count: Nodes, Log: r.config.NodeLog,
		// The whole log is read in the end; snapshots are taken all the same.
		Args: []string{"--trailing-logs", "10000000"},
	})
	if err != nil {
		return err
	}
	r.nodes, r.saboteur = nodes, newSaboteur(nodes)
	for i := range nodes.Len() {
		r.endpoints = append(r.endpoints, nodes.GRPC(i))
	}
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	return nodes.Healthy(ctx)
}

// configure applies the limit. At given endpoints it must be new: it is deleted in
// the end.
func (r *run) configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	var last error
	for _, address := range r.endpoints {
		last = r.configureAt(ctx, address)
		if last == nil || !bench.MayHaveHappened(last) {
			return last
		}
	}
	return last
}

func (r *run) configureAt(ctx context.Context, address string) error {
	if r.nodes == nil {
		conn, err := bench.Dial(address)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = quorleasev1.NewLimitsClient(conn).List(ctx, &quorleasev1.LimitsListRequest{Name: limitName})
		if err == nil {
			return fmt.Errorf("there is a limit %s at %s: another run goes on, or delete it", limitName, address)
		}
		if status.Code(err) != codes.NotFound {
			return fmt.Errorf("list limits at %s: %w", address, err)
		}
	}
	burst, open, keys := r.config.LimitBurst, max(1, r.config.LimitRate), int64(r.config.Keys)
	return bench.ApplyLimit(ctx, address, &quorleasev1.Limit{
		Name: limitName, Per: []string{"key"}, MaxKeys: &keys, Lease: durationpb.New(limitLease),
		OnQuorumLoss: onLoss[r.config.OnLoss], Exact: r.config.Exact,
		Dimensions: []*quorleasev1.Dimension{{
			Name: dimension, Burst: &burst, MaxOpen: &open,
			Rate: &quorleasev1.Rate{Amount: r.config.LimitRate, Interval: durationpb.New(time.Second)},
		}},
	})
}

// close ends everything that was started, whatever became of it.
func (r *run) close() error {
	var errs []error
	if r.authority != nil {
		errs = append(errs, r.authority.end())
	}
	if r.echo != nil {
		errs = append(errs, r.echo.Close())
	}
	if r.nodes != nil {
		errs = append(errs, r.nodes.Close())
	} else if r.authority != nil {
		errs = append(errs, r.remove())
	}
	return errors.Join(errs...)
}

// remove deletes the limit at given endpoints.
func (r *run) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var last error
	for _, address := range r.endpoints {
		conn, err := bench.Dial(address)
		if err != nil {
			return err
		}
		_, last = quorleasev1.NewLimitsClient(conn).Delete(ctx, &quorleasev1.LimitsDeleteRequest{Name: limitName})
		_ = conn.Close()
		if last == nil {
			return nil
		}
	}
	return fmt.Errorf("delete limit %s: %w", limitName, last)
}

func (r *run) settings() {
	c := r.config
	r.result.Settings = report.Settings{
		Path: string(c.Path), Callers: c.Callers, Keys: c.Keys, Distribution: string(c.Distribution),
		Loop: "closed", OnLoss: c.OnLoss, Exact: c.Exact, LimitRate: c.LimitRate, LimitBurst: c.LimitBurst,
		Rounds: c.Rounds, WarmupMS: ms(c.Warmup), LengthMS: ms(c.Length),
		Processor: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if r.nodes != nil {
		r.result.Settings.Nodes = r.nodes.Len()
	}
	if c.Rate > 0 {
		s := &r.result.Settings
		s.Loop, s.OfferedRate, s.Arrivals = "open", c.Rate, string(c.Arrivals)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// round measures both sides, the echo first in every other round, so that what
// comes first has no advantage.
func (r *run) round(ctx context.Context, n int) error {
	var one report.Round
	sides := []func() error{
		func() error {
			side, err := r.measure(ctx, n, r.authority)
			one.Quorlease = side
			return err
		},
		func() error {
			if r.echo == nil {
				return nil
			}
			side, err := r.measure(ctx, n, r.echo)
			one.Echo = &side
			return err
		},
	}
	first := n % 2
	for _, i := range []int{first, 1 - first} {
		if err := sides[i](); err != nil {
			return err
		}
	}
	r.result.Rounds = append(r.result.Rounds, one)
	return nil
}

func (r *run) measure(ctx context.Context, n int, s load.Side) (report.Side, error) {
	config := r.config.load(n)
	config.OnTime = load.KeepTime
	name := "echo"
	ours := s == load.Side(r.authority)
	if ours {
		name, config.Grant = "quorlease", r.tally.Grant
		if r.config.Faults.Any() {
			steps := r.saboteur.plan(&r.config.Faults, r.config.Length)
			config.Began = func(ctx context.Context, from time.Time) { r.saboteur.run(ctx, steps, from) }
		}
	}
	m, err := load.Run(ctx, &config, s)
	if err == nil && r.saboteur != nil {
		err = r.saboteur.failed
	}
	if err != nil {
		return report.Side{}, err
	}
	side := m.Report(r.config.Length)
	if ours {
		for what, count := range m.Failures {
			r.result.Failures[what] += count
		}
	}
	r.say("round %d of %d: %s %.0f/s, p99 %.2f ms, %d failed", n+1, r.config.Rounds, name,
		side.DecisionsPerSecond, side.P99, side.Failed)
	return side, nil
}

// load is what callers do in a round.
func (c *Config) load(round int) load.Config {
	return load.Config{
		Callers: c.Callers, Keys: c.Keys, Distribution: c.Distribution, Rate: c.Rate, Arrivals: c.Arrivals,
		Timeout: c.Timeout, Seed: c.Seed + uint64(round), Warmup: c.Warmup, Length: c.Length, Reason: link.Reason,
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
