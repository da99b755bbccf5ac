// Package storms turns a command line into a run of storms.
package storms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/storm/page"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
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

// Names writes the scenarios, a line each.
func Names(w io.Writer) error {
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

// Run plays what was chosen. It stops between two scenarios when ctx ends.
func (o *Options) Run(ctx context.Context) (*page.Result, error) {
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

// Files writes the page and the picture where they were asked for.
func (o *Options) Files(r *page.Result) error {
	return errors.Join(file("html", o.HTML, r.HTML), file("svg", o.Picture, r.Picture))
}

func file(flag, name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return errors.Join(write(f), f.Close())
}

// Failed is the error that a result ends the command with: a line for each figure
// that is out of its range, nil where there is none.
func Failed(r *page.Result) error {
	var errs []error
	for _, line := range r.Broken() {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}
