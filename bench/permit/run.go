package permit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
)

// Config says how often and how long.
type Config struct {
	// Rounds, each of every figure for Length after a Warmup.
	Rounds         int
	Warmup, Length time.Duration
	// Hasty: too short for any figure to be held to its bound.
	Hasty bool
	// Progress gets a line a round. Nil: nobody.
	Progress io.Writer
}

// Default is a run of a quarter of a minute.
func Default() Config {
	return Config{Rounds: 5, Warmup: time.Second, Length: 300 * time.Millisecond}
}

// Quick makes it one that shows that everything works, and no figure.
func (c *Config) Quick() {
	c.Hasty, c.Rounds, c.Warmup, c.Length = true, 1, 50*time.Millisecond, 20*time.Millisecond
}

// Takes is about how long a run takes.
func (c *Config) Takes() time.Duration {
	return time.Duration(c.Rounds) * (2*c.Warmup + 5*c.Length + 500*time.Millisecond)
}

// Round is what one round came to, in nanoseconds a decision.
type Round struct {
	// Alone is one caller, Together one a processor on two, all of one limiter: of this
	// program's limiter, and of x/time/rate.
	Alone        float64 `json:"alone_ns"`
	AloneRate    float64 `json:"alone_rate_ns"`
	Together     float64 `json:"together_ns"`
	TogetherRate float64 `json:"together_rate_ns"`
	// Allocs of a permit.
	Allocs int64 `json:"allocs"`
	// FailOpen is a decision of a client that knows that nobody answers.
	FailOpen float64 `json:"fail_open_ns"`
}

// Result is one run. Its JSON is documented in docs/reference/bench.md.
type Result struct {
	Rounds []Round       `json:"rounds"`
	Hasty  bool          `json:"hasty"`
	Bounds []bound.Bound `json:"bounds"`
}

// Run measures both sides in each round.
func Run(ctx context.Context, c Config) (*Result, error) {
	r := &Result{Rounds: []Round{}, Hasty: c.Hasty}
	for n := range c.Rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, err := c.round(ctx)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", n+1, err)
		}
		r.Rounds = append(r.Rounds, one)
		if c.Progress != nil {
			fmt.Fprintf(c.Progress, "round %d of %d: permit %.1f ns, x/time/rate %.1f ns\n",
				n+1, c.Rounds, one.Alone, one.AloneRate)
		}
	}
	r.judge()
	return r, nil
}

func (c *Config) round(ctx context.Context) (round Round, err error) {
	for _, one := range []struct {
		callers      int
		ours, beside *float64
		allocs       *int64
	}{{1, &round.Alone, &round.AloneRate, &round.Allocs}, {2, &round.Together, &round.TogetherRate, nil}} {
		took, err := c.permit(one.callers) //nolint:contextcheck // it lasts no longer than it is told
		if err != nil {
			return round, err
		}
		beside, err := measure(one.callers, c.Length, permits(other()))
		if err != nil {
			return round, err
		}
		*one.ours, *one.beside = took.nanos, beside.nanos
		if one.allocs != nil {
			*one.allocs = took.allocs
		}
	}
	away, err := failOpen(ctx, c.Length)
	round.FailOpen = away.nanos
	return round, err
}

// permit is what one of this program's costs.
func (c *Config) permit(callers int) (took timed, err error) {
	b, err := open()
	if err != nil {
		return timed{}, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	l, err := b.limiter(c.Warmup)
	if err != nil {
		return timed{}, err
	}
	return measure(callers, c.Length, permits(l))
}

// The bounds of local decisions: as parts of x/time/rate, and in nanoseconds.
const (
	aloneMost    = 1.0
	togetherMost = 0.5
	failOpenMost = 5000.0
)

func (r *Result) judge() {
	spread := func(of func(*Round) float64) stat.Spread {
		values := make([]float64, len(r.Rounds))
		for i := range values {
			values[i] = of(&r.Rounds[i])
		}
		return stat.SpreadOf(values)
	}
	ratio := func(b bound.Bound, ours, beside func(*Round) float64) {
		b.Ours = &bound.Term{Unit: "ns", Got: spread(ours)}
		b.Beside = &bound.Term{Name: "x/time/rate", Unit: "ns", Got: spread(beside)}
		got := spread(func(one *Round) float64 { return ours(one) / beside(one) })
		r.Bounds = append(r.Bounds, b.Judge(&got, "", !r.Hasty))
	}
	plain := func(b bound.Bound, of func(*Round) float64) {
		got := spread(of)
		r.Bounds = append(r.Bounds, b.Judge(&got, "", !r.Hasty))
	}
	ratio(bound.Bound{
		Bound: "permit-alone", Most: new(aloneMost), Name: "permit from a held lease (Limiter.Allow), one caller",
	}, func(one *Round) float64 { return one.Alone }, func(one *Round) float64 { return one.AloneRate })
	ratio(bound.Bound{
		Bound: "permit-together", Most: new(togetherMost), Name: "permit from a held lease, on two processors",
	}, func(one *Round) float64 { return one.Together }, func(one *Round) float64 { return one.TogetherRate })
	plain(bound.Bound{Bound: "permit-allocs", Most: new(0.0), Name: "allocations of a permit"},
		func(one *Round) float64 { return float64(one.Allocs) })
	plain(bound.Bound{
		Bound: "fail-open", Most: new(failOpenMost), Unit: "ns", Name: "decision while nobody answers (Client.Acquire)",
	}, func(one *Round) float64 { return one.FailOpen })
}

// Section is the run as a part of a sheet.
func (r *Result) Section() sheet.Section {
	t := sheet.Table{Title: "nanoseconds a decision, round by round", Heads: []string{
		"round", "one caller", "x/time/rate", "two processors", "x/time/rate", "allocations", "nobody answers",
	}}
	for i := range r.Rounds {
		one := &r.Rounds[i]
		t.Rows = append(t.Rows, []string{
			plot.Grouped(int64(i + 1)), plot.Number(one.Alone), plot.Number(one.AloneRate), plot.Number(one.Together),
			plot.Number(one.TogetherRate), plot.Grouped(one.Allocs), plot.Number(one.FailOpen),
		})
	}
	return sheet.Section{
		Section: "local", Title: "Decisions in the client's own memory", Hasty: r.Hasty, Bounds: r.Bounds,
		Heading: []string{"tokens that are held, beside golang.org/x/time/rate, in one process; both in each round"},
		Tables:  []sheet.Table{t},
	}
}
