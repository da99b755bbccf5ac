// Package storms turns a command line into a run of storms.
package storms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/storm/page"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/outcome"
)

// Long and Example are the command's help.
const (
	Long = `Replay three incidents as numbers, each as it was and as it is with Quorlease:
a batch job whose retries took a shared quota down, forty instances that tried
again on one cadence, and a nightly backfill that made 137 attempts for a task.

Everything happens in virtual time and follows from the seed. What decides is
the real state machine, the real queue and the real retry counters; clients,
gateways and providers are played. Each figure has the range that an independent
simulation found: exit code 1 means that one is outside.

It takes less than two minutes. Progress goes to standard error.`

	Example = `  quorlease bench storm
  quorlease bench storm --list
  quorlease bench storm --scenario s3-after --seed 7
  quorlease bench storm --html page.html -o json`
)

// Options are the flags of `bench storm`.
type Options struct {
	// Scenario is the slug of the one to run, with what it was before. Empty: all.
	Scenario string
	// Seed is what chance follows from.
	Seed uint64
	// List names the scenarios instead of running them.
	List bool
	// HTML and Picture are files to write to. Empty: none.
	HTML, Picture string

	// Version of the program, for the result.
	Version string
	// Progress is told what runs.
	Progress io.Writer
}

// Define adds the flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	flags.StringVar(&o.Scenario, "scenario", "", "run this one, by `slug`, and what it is seen beside; else all")
	flags.Uint64Var(&o.Seed, "seed", 1, "`number` that arrivals, delays and sizes are drawn by")
	flags.BoolVar(&o.List, "list", false, "name the scenarios and run none")
	flags.StringVar(&o.HTML, "html", "", "write one page with plots to this `file`")
	flags.StringVar(&o.Picture, "svg", "", "write the plots alone, as a picture, to this `file`")
}

// Answer is what the command prints, and the result where something ran.
func (o *Options) Answer(ctx context.Context, asJSON bool) (answer []byte, result *page.Result, err error) {
	var out bytes.Buffer
	if o.List {
		err = names(&out)
		return out.Bytes(), nil, err
	}
	if err = errors.Join(outcome.Writable("html", o.HTML), outcome.Writable("svg", o.Picture)); err != nil {
		return nil, nil, err
	}
	if result, err = o.run(ctx); err != nil {
		return nil, nil, err
	}
	answer, err = outcome.Print(result, asJSON)
	return answer, result, err
}

// names writes the scenarios, a line each.
func names(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range storm.All() {
		beside := ""
		if len(s.Twins) > 0 {
			beside = " (beside " + strings.Join(s.Twins, ", ") + ")"
		}
		fmt.Fprintf(table, "%s\t%s%s\n", s.Slug, s.Title, beside)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the names: %w", err)
	}
	return nil
}

// chosen are the scenarios to run, in their order.
func (o *Options) chosen() ([]storm.Scenario, error) {
	if o.Scenario == "" {
		return storm.All(), nil
	}
	one, ok := storm.Find(o.Scenario)
	if !ok {
		var slugs []string
		for _, s := range storm.All() {
			slugs = append(slugs, s.Slug)
		}
		return nil, exit.Usagef("--scenario: %q is none of %s", o.Scenario, strings.Join(slugs, ", "))
	}
	return slices.DeleteFunc(storm.All(), func(s storm.Scenario) bool {
		return s.Slug != one.Slug && !slices.Contains(one.Twins, s.Slug)
	}), nil
}

// run plays what was chosen. It stops between two scenarios when ctx ends.
func (o *Options) run(ctx context.Context) (*page.Result, error) {
	scenarios, err := o.chosen()
	if err != nil {
		return nil, err
	}
	result := &page.Result{Version: o.Version, Seed: o.Seed}
	for i, s := range scenarios {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("stopped before %s: %w", s.Slug, err)
		}
		fmt.Fprintf(o.Progress, "%d of %d: %s\n", i+1, len(scenarios), s.Slug)
		result.Scenarios = append(result.Scenarios, s.Run(o.Seed))
	}
	result.Sum()
	return result, nil
}

// Finish writes the page and the picture where they were asked for. The error has
// a line for each figure that is out of its range. r may be nil: nothing ran.
func (o *Options) Finish(r *page.Result) error {
	if r == nil {
		return nil
	}
	if err := errors.Join(
		outcome.Write("html", o.HTML, r.HTML), outcome.Write("svg", o.Picture, r.Picture),
	); err != nil {
		return err
	}
	return outcome.Missed(r.Broken())
}
