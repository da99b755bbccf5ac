package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/contention"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

// figure is one line of the table: both sides, and what is asked of them.
type figure struct {
	name, ours, beside, ratio, bound string
	ok                               bool
}

// part is some figures that are measured together.
type part func(ctx context.Context, p place, o options) ([]figure, error)

// parts are all of them, in the order of the table.
func parts() []part {
	return []part{
		byPath(contention.Session, "one session", 0.12, 12),
		byPath(contention.Unary, "unary calls", 0.33, 0),
		permits,
	}
}

// bounds measures every figure that has a bound and prints one table. It fails
// where one is missed.
func bounds(ctx context.Context, p place, o options, out io.Writer) error {
	if o.rounds == 0 {
		o.rounds = 5
	}
	var figures []figure
	for _, measure := range parts() {
		some, err := measure(ctx, p, o)
		if err != nil {
			return err
		}
		figures = append(figures, some...)
	}
	fmt.Fprintf(out, "Median of %d interleaved rounds (lowest to highest).\n\n", o.rounds)
	return table(figures, out)
}

// table prints the figures as they can stand in a document.
func table(figures []figure, out io.Writer) error {
	fmt.Fprintln(out, "| figure | Quorlease | beside it | ratio | bound |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	var missed []error
	for _, f := range figures {
		verdict := "kept"
		if !f.ok {
			verdict = "MISSED"
			missed = append(missed, fmt.Errorf("%s: %s is not %s", f.name, strings.TrimSpace(f.ours+" "+f.ratio), f.bound))
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s, %s |\n", f.name, f.ours, f.beside, f.ratio, f.bound, verdict)
	}
	return errors.Join(missed...)
}

// The load of the figures of consensus: no bucket is ever full or empty.
const (
	figureCallers = 128
	figureRate    = 100
	figureBurst   = 1 << 32
)

// byPath measures consensus by one path: how many decisions, as a part of the
// echoes by the same path, and, where it is bounded, the p99 in milliseconds.
func byPath(path contention.Path, name string, ratio, p99 float64) part {
	return func(ctx context.Context, p place, o options) ([]figure, error) {
		dir := filepath.Join(p.dir, string(path))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		config := contention.Default()
		config.Binary, config.Dir, config.Progress = p.binary, dir, p.log
		config.Path, config.Callers, config.Distribution = path, figureCallers, stat.Uniform
		config.LimitRate, config.LimitBurst, config.Exact = figureRate, figureBurst, true
		config.Rounds, config.Warmup, config.Length = o.rounds, time.Second, o.length
		if o.verbose {
			config.NodeLog = p.log
		}
		result, err := contention.Run(ctx, config)
		if err != nil {
			return nil, err
		}
		return figuresOf(result, name, ratio, p99)
	}
}

// figuresOf reads the figures off a result. A guarantee that broke ends it all.
func figuresOf(r *report.Result, name string, ratio, p99 float64) ([]figure, error) {
	var broken []error
	for _, line := range r.Broken() {
		broken = append(broken, errors.New(line))
	}
	if len(broken) > 0 {
		return nil, errors.Join(broken...)
	}
	title := fmt.Sprintf("consensus over %s, %d callers", name, r.Settings.Callers)
	figures := []figure{{
		name: title, ours: plot.Spread(r.Quorlease.DecisionsPerSecond, "/s"),
		beside: "bare echo " + plot.Spread(r.Echo.DecisionsPerSecond, "/s"),
		ratio:  plot.Spread(*r.Ratio, ""), bound: fmt.Sprintf("≥ %g", ratio), ok: r.Ratio.Median >= ratio,
	}}
	if p99 > 0 {
		figures = append(figures, figure{
			name: title + ", p99", ours: plot.Spread(r.Quorlease.P99, " ms"),
			beside: "bare echo " + plot.Spread(r.Echo.P99, " ms"),
			bound:  fmt.Sprintf("≤ %g ms", p99), ok: r.Quorlease.P99.Median <= p99,
		})
	}
	return figures, nil
}
