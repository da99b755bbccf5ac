// Package scaling turns a command line into a measure of scaling.
package scaling

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/scale"
	"github.com/quorlease/quorlease/bench/scale/page"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/outcome"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// Long and Example are the command's help.
const (
	Long = `Measure how grants from escrow grow with nodes, each at an equal small share of a
processor, and what a grant costs by the number of active buckets, by the number
of callers, and while snapshots of a large state are taken; and what grants at a
steady rate write to the log. Every history is
checked: G1 by the log of a node that was stopped, G1 and G2 by the clients'
clock.

It starts all nodes by itself, on free ports of loopback and in a temporary
directory, and ends them. Those beyond three are learners. The shares need Linux
and the right to make control groups, which root has; without that nodes are
measured without shares, which is said, and are held to no bound.

Without flags it takes less than five minutes on a quiet machine, and some 2 GB
of memory. Progress goes to standard error. Exit code 1 means that a guarantee
broke or that a bound was missed; each is named.`

	Example = `  quorlease bench scale --html page.html
  quorlease bench scale --parts nodes --nodes 1,3,5 --share 10% --rounds 5 --length 4s
  quorlease bench scale --parts keys,callers --keys 1000,1000000 --callers 128 -o json`
)

// Options are the flags of `bench scale`.
type Options struct {
	scale.Config

	// HTML is the file to write a page to. Empty: none.
	HTML string

	parts []string
	data  string
	quick bool
}

// Define adds the flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	o.Config = scale.Default()
	c := &o.Config
	for _, part := range c.Parts {
		o.parts = append(o.parts, string(part))
	}
	flags.StringSliceVar(&o.parts, "parts", o.parts, "the `names` of what is measured")
	flags.IntSliceVar(&c.Nodes, "nodes", c.Nodes, "`numbers` of nodes, 1 to 9 each")
	setting.Percent(flags, &c.Share, "share", "what part of a processor each of these nodes has, `N%`, 1% to 100%")
	flags.IntSliceVar(&c.Keys, "keys", c.Keys, "`numbers` of active buckets that callers choose from, 1 to 1000000 each")
	flags.IntSliceVar(&c.Callers, "callers", c.Callers, "`numbers` of callers, 1 to 10000 each")
	flags.IntSliceVar(&c.Buckets, "buckets", c.Buckets, "`numbers` of buckets in snapshots, 1000 to 1000000 each")
	flags.Float64Var(&c.Steady, "steady", c.Steady,
		"how `many` grants a second are asked for where log entries are counted")
	flags.IntVar(&c.Rounds, "rounds", c.Rounds, "how `many` rounds, each of every number, 1 to 100")
	flags.DurationVar(&c.Warmup, "warmup", c.Warmup,
		"part of a turn that is not counted; there is none for numbers of keys")
	flags.DurationVar(&c.Length, "length", c.Length, "part of it that is")
	flags.BoolVar(&o.quick, "quick", false,
		"one short round of few numbers and no snapshots, to see that everything works; no figure of it says anything")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "`number` that keys are drawn by")
	flags.StringVar(&o.data, "data", "",
		"`directory` to make one for the nodes' data in, which is removed in the end; else the system's for such things")
	flags.StringVar(&o.HTML, "html", "", "write one page with plots to this `file`")
	setting.Range(flags, "nodes", "1 to 9")
	setting.Range(flags, "keys", "1 to 1000000")
	setting.Range(flags, "callers", "1 to 10000")
	setting.Range(flags, "buckets", "1000 to 1000000")
	setting.Range(flags, "rounds", "1 to 100")
}

// Complete checks the flags and fills in the run. changed says which were given.
func (o *Options) Complete(changed func(flag string) bool) error {
	c := &o.Config
	given := *c
	if o.quick {
		for _, flag := range []string{"rounds", "warmup", "length"} {
			if changed(flag) {
				return exit.Usagef("--%s does not go with --quick, which sets it", flag)
			}
		}
		c.Quick()
		for flag, take := range map[string]func(){
			"nodes": func() { c.Nodes = given.Nodes }, "keys": func() { c.Keys = given.Keys },
			"callers": func() { c.Callers = given.Callers }, "steady": func() { c.Steady = given.Steady },
		} {
			if changed(flag) {
				take()
			}
		}
	}
	if !o.quick || changed("parts") {
		c.Parts = nil
		for _, part := range o.parts {
			c.Parts = append(c.Parts, scale.Part(part))
		}
	}
	if err := c.Validate(); err != nil {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	return nil
}

// Answer is what the command prints, and the result.
func (o *Options) Answer(ctx context.Context, asJSON bool) (answer []byte, result *page.Result, err error) {
	if err = outcome.Writable("html", o.HTML); err != nil {
		return nil, nil, err
	}
	// In a directory of its own, which is removed.
	err = outcome.Within(o.data, "scale", func(dir, program string) (err error) {
		o.Dir, o.Binary = dir, program
		result, err = scale.Run(ctx, o.Config)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	answer, err = outcome.Print(result, asJSON)
	return answer, result, err
}

// Finish writes the page where one was asked for. The error has a line for each
// guarantee that broke and each bound that was missed.
func (o *Options) Finish(r *page.Result) error {
	if err := outcome.Write("html", o.HTML, r.HTML); err != nil {
		return err
	}
	return outcome.Missed(r.Missed())
}
