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

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/bubble"
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

The scenarios that end in -gateway come after: there whole gateways stand before
whole nodes, with their Raft, and only programs and the provider are played. They
take a processor some minutes; --played leaves them out, and what is left takes
less than two. Progress goes to standard error.`

	Example = `  quorlease bench storm
  quorlease bench storm --list
  quorlease bench storm --scenario s3-after --seed 7
  quorlease bench storm --scenario s2-ours-gateway
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
	// Played leaves out the scenarios with whole gateways.
	Played bool
	// Real plays those with whole gateways in real time, with processes.
	Real bool
	// HTML and Picture are files to write to. Empty: none.
	HTML, Picture string
	// Bubble makes this process one that plays Scenario, with whole gateways, in this
	// directory.
	Bubble string

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
	flags.BoolVar(&o.Played, "played", false, "leave out the scenarios with whole gateways")
	o.defineReal(flags)
	flags.StringVar(&o.Bubble, "bubble", "", "play one scenario with whole gateways in this `directory`, and nothing else")
	// It is for the processes that this one starts.
	_ = flags.MarkHidden("bubble")
	flags.StringVar(&o.HTML, "html", "", "write one page with plots to this `file`")
	flags.StringVar(&o.Picture, "svg", "", "write the plots alone, as a picture, to this `file`")
}

// Answer is what the command prints, and the result where something ran.
func (o *Options) Answer(ctx context.Context, asJSON bool) (answer []byte, result *page.Result, err error) {
	if o.Bubble != "" {
		return nil, nil, o.play() //nolint:contextcheck // the process is its own, and is killed
	}
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
	one := func(slug, title string, twins []string) {
		beside := ""
		if len(twins) > 0 {
			beside = " (beside " + strings.Join(twins, ", ") + ")"
		}
		fmt.Fprintf(table, "%s\t%s%s\n", slug, title, beside)
	}
	for _, s := range storm.All() {
		one(s.Slug, s.Title, s.Twins)
	}
	for _, s := range gateways.All() {
		one(s.Slug, s.Title, s.Twins)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the names: %w", err)
	}
	return nil
}

// chosen are the scenarios to run, in their order: those that are played, and those with
// whole gateways.
func (o *Options) chosen() (played []storm.Scenario, whole []gateways.Storm, err error) {
	if o.Scenario == "" {
		if !o.Played {
			whole = gateways.All()
		}
		return storm.All(), whole, nil
	}
	var twins []string
	if one, ok := storm.Find(o.Scenario); ok {
		twins = one.Twins
	} else if one, ok := gateways.Find(o.Scenario); ok {
		twins, whole = one.Twins, []gateways.Storm{one}
	} else {
		var slugs []string
		for _, s := range storm.All() {
			slugs = append(slugs, s.Slug)
		}
		for _, s := range gateways.All() {
			slugs = append(slugs, s.Slug)
		}
		return nil, nil, exit.Usagef("--scenario: %q is none of %s", o.Scenario, strings.Join(slugs, ", "))
	}
	return slices.DeleteFunc(storm.All(), func(s storm.Scenario) bool {
		return s.Slug != o.Scenario && !slices.Contains(twins, s.Slug)
	}), whole, nil
}

// play plays one scenario with whole gateways and ends this process.
func (o *Options) play() error {
	one, ok := gateways.Find(o.Scenario)
	if !ok {
		return exit.Usagef("--bubble: --scenario %q has no whole gateways", o.Scenario)
	}
	bubble.Main(o.Bubble, one, o.Seed)
	return nil
}

// run plays what was chosen. It stops between two scenarios when ctx ends.
func (o *Options) run(ctx context.Context) (*page.Result, error) {
	scenarios, whole, err := o.chosen()
	if err != nil {
		return nil, err
	}
	play := o.whole
	if o.Real {
		play = o.live
		if scenarios, whole, err = o.inReal(scenarios, whole); err != nil {
			return nil, err
		}
	}
	result := &page.Result{Version: o.Version, Seed: o.Seed}
	for i, s := range scenarios {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("stopped before %s: %w", s.Slug, err)
		}
		fmt.Fprintf(o.Progress, "%d of %d: %s\n", i+1, len(scenarios), s.Slug)
		result.Scenarios = append(result.Scenarios, s.Run(o.Seed))
	}
	outcomes, err := play(ctx, whole)
	if err != nil {
		return nil, err
	}
	result.Scenarios = append(result.Scenarios, outcomes...)
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
