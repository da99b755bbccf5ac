package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/stat"
)

// permitPackage has the benchmarks of local decisions.
const permitPackage = "github.com/quorlease/quorlease/bench/permit"

// The bounds of local decisions: as parts of x/time/rate, and nanoseconds.
const (
	aloneMost    = 1.2
	togetherMost = 0.6
	failOpenMost = 5000
)

// permits runs the benchmarks of local decisions, both sides in each round.
func permits(ctx context.Context, p place, o options) ([]figure, error) {
	program := filepath.Join(p.dir, "permit.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, permitPackage)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", permitPackage, err, out)
	}
	rounds := make([]measurements, o.rounds)
	for n := range rounds {
		run := exec.CommandContext(ctx, program,
			"-test.run", "^$", "-test.bench", ".", "-test.benchtime", "300ms", "-test.cpu", "1,2", "-test.timeout", "2m")
		run.Dir = p.dir
		out, err := run.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("run %s: %w\n%s", permitPackage, err, out)
		}
		rounds[n] = readBenchmarks(string(out))
		fmt.Fprintf(p.log, "round %d of %d: local decisions\n", n+1, o.rounds)
	}
	return permitFigures(rounds)
}

// measurement is one benchmark of one round.
type measurement struct{ nanos, allocs float64 }

// measurements are those of one round by name, such as "Alone/rate-2".
type measurements map[string]measurement

var benchmarkLine = regexp.MustCompile(
	`(?m)^Benchmark(\S+)\s+\d+\s+([0-9.]+) ns/op\s+[0-9.]+ B/op\s+(\d+) allocs/op`)

func readBenchmarks(text string) measurements {
	found := measurements{}
	for _, match := range benchmarkLine.FindAllStringSubmatch(text, -1) {
		nanos, errNanos := strconv.ParseFloat(match[2], 64)
		allocs, errAllocs := strconv.ParseFloat(match[3], 64)
		if errNanos == nil && errAllocs == nil {
			found[match[1]] = measurement{nanos, allocs}
		}
	}
	return found
}

// over is a benchmark's spread over the rounds.
func over(rounds []measurements, name string, of func(measurement) float64) (stat.Spread, error) {
	var values []float64
	for n, round := range rounds {
		one, ok := round[name]
		if !ok {
			return stat.Spread{}, fmt.Errorf("round %d has no benchmark %s", n+1, name)
		}
		values = append(values, of(one))
	}
	return stat.SpreadOf(values), nil
}

func nanos(m measurement) float64 { return m.nanos }

func permitFigures(rounds []measurements) ([]figure, error) {
	alone, err := beside(rounds, "Alone/quorlease", "Alone/rate", aloneMost)
	if err != nil {
		return nil, err
	}
	alone.name = "permit from a held lease (`Limiter.Allow`), one caller"
	together, err := beside(rounds, "Together/quorlease-2", "Together/rate-2", togetherMost)
	if err != nil {
		return nil, err
	}
	together.name = "permit from a held lease, on two processors"
	allocs, err := over(rounds, "Alone/quorlease", func(m measurement) float64 { return m.allocs })
	if err != nil {
		return nil, err
	}
	away, err := over(rounds, "FailOpen", nanos)
	if err != nil {
		return nil, err
	}
	return []figure{
		alone, together,
		{
			name: "allocations of a permit", ours: plot.Spread(allocs, ""), bound: "0", ok: allocs.Max == 0,
		},
		{
			name: "decision while nobody answers (`Client.Acquire`)", ours: plot.Spread(away, " ns"),
			bound: fmt.Sprintf("≤ %d ns", failOpenMost), ok: away.Median <= failOpenMost,
		},
	}, nil
}

// beside compares two benchmarks round by round.
func beside(rounds []measurements, ours, theirs string, most float64) (figure, error) {
	us, err := over(rounds, ours, nanos)
	if err != nil {
		return figure{}, err
	}
	them, err := over(rounds, theirs, nanos)
	if err != nil {
		return figure{}, err
	}
	ratios := make([]float64, len(rounds))
	for n, round := range rounds {
		ratios[n] = round[ours].nanos / round[theirs].nanos
	}
	ratio := stat.SpreadOf(ratios)
	return figure{
		ours: plot.Spread(us, " ns"), beside: "x/time/rate " + plot.Spread(them, " ns"),
		ratio: plot.Spread(ratio, ""), bound: fmt.Sprintf("≤ %g", most), ok: ratio.Median <= most,
	}, nil
}
