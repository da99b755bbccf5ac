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
	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
	"github.com/quorlease/quorlease/bench/tally"
)

// run is one under way.
type run struct {
	config  *Config
	systems []*running
	result  *page.Result
	// nobodys are tallies that nobody looks at, by the bucket.
	nobodys map[string]*tally.Tally
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
	// note is told its grants.
	note func(key int, sent, ended time.Time)
}

// CPU is that of the whole system. Of one whose processes have ended it is not known;
// that it does not answer is counted anyway.
func (d *door) CPU() (time.Duration, error) {
	used, err := d.system.CPU()
	if err != nil {
		return 0, errors.Join(load.ErrUnknown, err)
	}
	return used, nil
}

// audited is a system whose whole history can be held to G1 and G2.
type audited interface {
	// Note is told every grant that callers see.
	Note(way peer.Way, bucket peer.Bucket) func(key int, sent, ended time.Time)
	// Check holds all of them, and what the system wrote. It ends a part of it.
	Check(ctx context.Context) ([]report.Check, error)
}

// note is told the grants of a system: its own, or one that notes them for nobody, so
// that everybody's callers have the same work.
func (r *run) note(s peer.System, way peer.Way, bucket peer.Bucket) func(key int, sent, ended time.Time) {
	if own, ok := s.(audited); ok {
		return own.Note(way, bucket)
	}
	if r.nobodys[bucket.Name] == nil {
		r.nobodys[bucket.Name] = tally.New(tally.Bucket{Limit: bucket.Name}, bucket.AllKeys(), r.config.lasting())
	}
	return r.nobodys[bucket.Name].Grant
}

// Run compares, and ends every process that it started. A bound that was missed is
// in the result and no error.
func Run(ctx context.Context, c Config) (*page.Result, error) {
	c.onTime = load.KeepTime
	return compare(ctx, &c, entrants())
}

func compare(ctx context.Context, c *Config, all []entrant) (result *page.Result, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &run{config: c, nobodys: map[string]*tally.Tally{}, result: &page.Result{
		Version: c.Version, Settings: c.settings(), Sides: []page.Side{}, Trials: []page.Trial{}, Missing: []page.Missing{},
		Checks: []report.Check{},
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
	programs, missing := r.config.programs(all)
	if err := r.config.required(missing); err != nil {
		return err
	}
	r.result.Missing = append(r.result.Missing, missing...)
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
		Callers: r.config.Callers, Timeout: r.config.Timeout, Lasting: r.config.lasting(), Log: r.config.Log,
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
	var versions []string
	for _, program := range e.needs {
		versions = append(versions, strings.TrimSpace(program.Name+" "+peer.Version(ctx, programs[program.Name])))
	}
	one.version = strings.Join(versions, " with ")
	for _, s := range e.sides {
		opened, err := one.system.Open(ctx, s.way, loaded)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", e.name, err)
		}
		one.doors = append(one.doors, door{
			side: s, Door: opened, system: one.system, at: len(r.result.Sides), note: r.note(one.system, s.way, loaded),
		})
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

// check holds everything that was granted by those whose history can be looked at to the
// guarantees. It ends them.
func (r *run) check(ctx context.Context) error {
	for _, one := range r.systems {
		system, ok := one.system.(audited)
		if !ok {
			continue
		}
		r.say("checking G1 and G2 of %s", one.name)
		checks, err := system.Check(ctx)
		if err != nil {
			return fmt.Errorf("check %s: %w", one.name, err)
		}
		r.result.Checks = append(r.result.Checks, checks...)
	}
	return nil
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
		Grant: d.note,
	}
	if d.kind == page.Paced {
		round.Rate, round.OnTime = c.PacedRate, c.onTime
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
