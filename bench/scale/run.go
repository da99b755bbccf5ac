package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/scale/page"
	"github.com/quorlease/quorlease/bench/share"
	"github.com/quorlease/quorlease/bench/sheet"
)

// run is one under way.
type run struct {
	config   *Config
	clusters int
	result   *page.Result
}

// limitName is that of the limit that is loaded.
const limitName = "bench-scale"

// Run measures, checks, and ends every process that it started. A guarantee that broke
// and a bound that was missed are in the result and no error.
func Run(ctx context.Context, c Config) (*page.Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &run{config: &c, result: &page.Result{
		Version: c.Version, Settings: c.settings(),
		Nodes: []page.Point{}, Keys: []page.Point{}, Callers: []page.Point{}, Entries: []page.Point{},
		Snapshots: []page.Snapshot{},
		Checks:    []report.Check{},
	}}
	for _, one := range []struct {
		part    Part
		measure func(context.Context) error
	}{{Nodes, r.nodes}, {Keys, r.keys}, {Callers, r.callers}, {Entries, r.entries}, {Snapshots, r.snapshots}} {
		if !c.runs(one.part) {
			continue
		}
		if err := one.measure(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", one.part, err)
		}
	}
	r.result.Sum()
	return r.result, nil
}

func (r *run) say(format string, values ...any) {
	if r.config.Progress != nil {
		fmt.Fprintf(r.config.Progress, format+"\n", values...)
	}
}

func (c *Config) settings() page.Settings {
	return page.Settings{
		Place: sheet.Here(), Hasty: c.Hasty, Rounds: c.Rounds, WarmupMS: ms(c.Warmup), LengthMS: ms(c.Length),
	}
}

// rounds measures every point once a round. Every other round goes backwards, so that
// what comes first has no advantage.
func (r *run) rounds(points []page.Point, measure func(p *page.Point, round int) error) error {
	order := make([]*page.Point, len(points))
	for i := range points {
		order[i] = &points[i]
		order[i].Failures, order[i].Rounds = map[string]int64{}, []page.Round{}
	}
	for n := range r.config.Rounds {
		for _, p := range order {
			if err := measure(p, n); err != nil {
				return fmt.Errorf("%d, round %d: %w", p.At, n+1, err)
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// take adds a load to a point.
func (r *run) take(p *page.Point, n int, what string, l *loaded, touched int64) {
	one := l.round(r.config.Length)
	one.Touched = touched
	p.Rounds = append(p.Rounds, one)
	for reason, count := range l.Failures {
		p.Failures[reason] += count
	}
	r.say("round %d of %d: %s: %s/s, p99 %.2f ms, %d failed", n+1, r.config.Rounds, what,
		plot.Number(one.GrantsPerSecond), one.P99, one.Failed)
}

// turn is how a point is measured alone.
type turn struct {
	// what is counted on the axis.
	what string
	// shares are nil where nodes have the whole machine.
	shares *share.Groups
	warmup time.Duration
	// rate is that of an open loop; 0: callers ask again at once.
	rate float64
}

// alone measures a point with a cluster of its own.
func (r *run) alone(ctx context.Context, p *page.Point, n int, t turn) (err error) {
	what := counted(p.At, t.what)
	c, err := r.start(ctx, p.Voters+p.Learners, t.shares)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	f, err := c.open(ctx, p.Keys, false, r.config.Timeout, t.warmup+r.config.Length)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	before, err := c.exported(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.bound(r.config.Share); err != nil {
		return err
	}
	l, err := f.load(ctx, r.config, asking{p.Callers, t.rate, t.warmup, uint64(n)})
	if err != nil {
		return err
	}
	// What follows is no part of the measure.
	took := time.Since(began)
	if err := c.bound(0); err != nil {
		return err
	}
	after, err := c.exported(ctx)
	if err != nil {
		return err
	}
	l.entries = float64(after[0].since(&before[0]).entries) / took.Seconds()
	r.take(p, n, what, l, f.tally.Touched())
	return r.note(f.check(ctx, fmt.Sprintf("%s, round %d", what, n+1)))
}

// note takes over what a check came to.
func (r *run) note(checks []report.Check, err error) error {
	r.result.Checks = append(r.result.Checks, checks...)
	return err
}

// nodes measures clusters of different sizes, whose nodes have an equal share each.
func (r *run) nodes(ctx context.Context) error {
	shares, err := share.Open(r.config.Mount)
	switch {
	case errors.Is(err, share.ErrUnavailable):
		r.say("nodes get no share of a processor each: %v", err)
		r.result.Settings.Unshared = err.Error()
	case err != nil:
		return err
	default:
		r.result.Settings.Share = float64(r.config.Share) / share.Whole
	}
	for _, size := range r.config.Nodes {
		voters := min(size, votersMost)
		r.result.Nodes = append(r.result.Nodes, page.Point{
			At: int64(size), Voters: voters, Learners: size - voters, Callers: size * nodeCallers, Keys: fewKeys,
		})
	}
	return r.rounds(r.result.Nodes, func(p *page.Point, n int) error {
		return r.alone(ctx, p, n, turn{what: "node", shares: shares, warmup: r.config.Warmup})
	})
}

// keys measures numbers of active buckets. The first touches of the keys are a part of
// it: there is nothing before that is not counted.
func (r *run) keys(ctx context.Context) error {
	for _, keys := range r.config.Keys {
		r.result.Keys = append(r.result.Keys, page.Point{
			At: int64(keys), Voters: votersMost, Callers: keysCallers, Keys: keys,
		})
	}
	return r.rounds(r.result.Keys, func(p *page.Point, n int) error {
		return r.alone(ctx, p, n, turn{what: "key"})
	})
}

// callers measures numbers of callers, all with one cluster.
func (r *run) callers(ctx context.Context) (err error) {
	for _, callers := range r.config.Callers {
		r.result.Callers = append(r.result.Callers, page.Point{
			At: int64(callers), Voters: votersMost, Callers: callers, Keys: fewKeys,
		})
	}
	c, err := r.start(ctx, votersMost, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	all := time.Duration(r.config.Rounds*len(r.config.Callers)) * (r.config.Warmup + r.config.Length)
	f, err := c.open(ctx, fewKeys, false, r.config.Timeout, all)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	err = r.rounds(r.result.Callers, func(p *page.Point, n int) error {
		l, err := f.load(ctx, r.config, asking{p.Callers, 0, r.config.Warmup, uint64(n)})
		if err == nil {
			r.take(p, n, counted(p.At, "caller"), l, f.tally.Touched())
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.note(f.check(ctx, "callers"))
}

// entries counts the log entries of grants at a steady rate.
func (r *run) entries(ctx context.Context) error {
	r.result.Settings.Steady = r.config.Steady
	r.result.Entries = append(r.result.Entries, page.Point{
		At: fewKeys, Voters: votersMost, Callers: steadyCallers, Keys: fewKeys,
	})
	return r.rounds(r.result.Entries, func(p *page.Point, n int) error {
		return r.alone(ctx, p, n, turn{what: "bucket", warmup: r.config.Warmup, rate: r.config.Steady})
	})
}

func counted(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return plot.Grouped(n) + " " + what
}
