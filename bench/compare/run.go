package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/compare/page"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/compare/quorlease"
	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
)

// run is one under way.
type run struct {
	config  *Config
	systems []*running
	result  *page.Result
}

// running is an entrant that was started.
type running struct {
	entrant
	version string
	system  peer.System
	doors   []door
}

// door is a side that is open. It is what is loaded.
type door struct {
	side
	peer.Door
	system peer.System
	// at is its place in the result.
	at int
}

// CPU is that of the whole system.
func (d *door) CPU() (time.Duration, error) { return d.system.CPU() }

// Run compares, and ends every process that it started. A bound that was missed is
// in the result and no error.
func Run(ctx context.Context, c Config) (*page.Result, error) { return compare(ctx, &c, entrants()) }

func compare(ctx context.Context, c *Config, all []entrant) (result *page.Result, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &run{config: c, result: &page.Result{
		Version: c.Version, Settings: c.settings(), Sides: []page.Side{}, Trials: []page.Trial{}, Missing: []page.Missing{},
	}}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx, all); err != nil {
		return nil, err
	}
	for n := range c.Rounds {
		if err := r.round(ctx, n); err != nil {
			return nil, fmt.Errorf("round %d: %w", n+1, err)
		}
	}
	if err := r.try(ctx); err != nil {
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

func (c *Config) settings() page.Settings {
	return page.Settings{
		Place: sheet.Here(), Callers: c.Callers, Keys: c.Keys, Distribution: string(c.Distribution), PacedRate: c.PacedRate,
		Required: append([]string{}, c.Require...),
		Hasty:    c.Hasty, Rounds: c.Rounds, WarmupMS: ms(c.Warmup), LengthMS: ms(c.Length),
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// open starts everybody who is there and connects to all.
func (r *run) open(ctx context.Context, all []entrant) error {
	// Whoever is required must be there before the first is started.
	programs := make([]map[string]string, len(all))
	for i, e := range all {
		var missing *page.Missing
		if programs[i], missing = r.find(e); missing != nil {
			r.result.Missing = append(r.result.Missing, *missing)
		}
	}
	for _, m := range r.result.Missing {
		if slices.Contains(r.config.Require, m.System) {
			return fmt.Errorf("--require %s: %s; get it by: %s", m.System, m.Why, m.How)
		}
	}
	for i, e := range all {
		if programs[i] == nil {
			continue
		}
		if err := r.start(ctx, e, programs[i]); err != nil {
			return err
		}
	}
	return nil
}

// find looks for what an entrant needs.
func (r *run) find(e entrant) (map[string]string, *page.Missing) {
	found := map[string]string{quorlease.Program: r.config.Binary}
	if slices.Contains(r.config.Without, e.name) {
		return nil, &page.Missing{System: e.name, Why: "left out"}
	}
	var missing, how []string
	for _, program := range e.needs {
		path := peer.Find(r.config.Peers, program)
		if path == "" {
			missing = append(missing, program.Name)
			how = append(how, program.How)
		}
		found[program.Name] = path
	}
	if len(missing) > 0 {
		return nil, &page.Missing{
			System: e.name, Why: "there is no " + strings.Join(missing, " and no "), How: strings.Join(how, "; "),
		}
	}
	return found, nil
}

// start starts one and opens its doors. One of others that does not start, and is
// not required, is missing.
func (r *run) start(ctx context.Context, e entrant, programs map[string]string) error {
	r.say("starting %s", e.name)
	dir := filepath.Join(r.config.Dir, e.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("start %s: %w", e.name, err)
	}
	loaded, tried := r.config.buckets()
	one := &running{entrant: e}
	var err error
	one.system, err = e.start(ctx, peer.Config{
		Programs: programs, Dir: dir, Buckets: []peer.Bucket{loaded, tried},
		Callers: r.config.Callers, Timeout: r.config.Timeout, Log: r.config.Log,
	})
	if err != nil {
		err = fmt.Errorf("start %s: %w", e.name, err)
		if len(e.needs) == 0 || ctx.Err() != nil || slices.Contains(r.config.Require, e.name) {
			return err
		}
		r.say("%v", err)
		r.result.Missing = append(r.result.Missing, page.Missing{System: e.name, Why: err.Error(), How: e.needs[0].How})
		return nil
	}
	r.systems = append(r.systems, one)
	if len(e.needs) > 0 {
		one.version = strings.TrimSpace(e.needs[0].Name + " " + peer.Version(ctx, programs[e.needs[0].Name]))
	}
	for _, s := range e.sides {
		opened, err := one.system.Open(ctx, s.way, loaded)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", e.name, err)
		}
		one.doors = append(one.doors, door{side: s, Door: opened, system: one.system, at: len(r.result.Sides)})
		r.result.Sides = append(r.result.Sides, page.Side{
			Side: s.slug, Name: s.name, System: e.name, SystemVersion: one.version, Kind: s.kind,
			Failures: map[string]int64{},
		})
	}
	return nil
}

// close ends everything that was started, whatever became of it.
func (r *run) close() error {
	var errs []error
	for _, one := range slices.Backward(r.systems) {
		for _, d := range one.doors {
			errs = append(errs, d.Close())
		}
		errs = append(errs, one.system.Close())
	}
	return errors.Join(errs...)
}

// order is that of the kinds in a round: like beside like.
var order = map[page.Kind]int{page.Unary: 0, page.Stream: 1, page.Paced: 2}

// round measures every side once. Every other round goes backwards, so that what
// comes first has no advantage.
func (r *run) round(ctx context.Context, n int) error {
	var doors []*door
	for _, one := range r.systems {
		for i := range one.doors {
			doors = append(doors, &one.doors[i])
		}
	}
	slices.SortStableFunc(doors, func(a, b *door) int { return order[a.kind] - order[b.kind] })
	if n%2 == 1 {
		slices.Reverse(doors)
	}
	for _, d := range doors {
		if err := r.measure(ctx, n, d); err != nil {
			return fmt.Errorf("%s: %w", d.slug, err)
		}
	}
	return nil
}

func (r *run) measure(ctx context.Context, n int, d *door) error {
	c := r.config
	round := load.Config{
		Callers: c.Callers, Keys: c.Keys, Distribution: c.Distribution, Arrivals: stat.Poisson, Timeout: c.Timeout,
		Seed: c.Seed + uint64(n), Warmup: c.Warmup, Length: c.Length, Reason: link.Reason,
	}
	if d.kind == page.Paced {
		round.Rate = c.PacedRate
	}
	m, err := load.Run(ctx, &round, d)
	if err != nil {
		return err
	}
	shown := m.Report(c.Length)
	side := &r.result.Sides[d.at]
	side.Rounds = append(side.Rounds, shown)
	for what, count := range m.Failures {
		side.Failures[what] += count
	}
	r.say("round %d of %d: %s %.0f/s, p99 %.2f ms, %d failed", n+1, c.Rounds, d.slug,
		shown.DecisionsPerSecond, shown.P99, shown.Failed)
	return nil
}
