// Package comparing turns a command line into a comparison with others.
package comparing

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/compare"
	"github.com/quorlease/quorlease/bench/compare/page"
	"github.com/quorlease/quorlease/bench/stat"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/outcome"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// Long and Example are the command's help.
const (
	Long = `Let the same callers ask for the same tokens of Quorlease, of a Redis script, of
envoyproxy/ratelimit, of Gubernator and of etcd, beside a bare gRPC echo, in
interleaved rounds; then kill everything and count what each granted too many.
Everything that Quorlease granted is held to G1 and G2.

It starts every server by itself, on free ports of loopback and in a temporary
directory, and ends them. Programs of others are looked for in --peers, on PATH
and where "go install" puts them. What is not there is named, with how to get
it; --require makes that an error before anything runs.

Without flags it takes some four minutes with everybody there. Progress goes to
standard error. Exit code 1 means that a guarantee broke, that a bound was missed,
or that one that is required was not measured; each is named.`

	Example = `  quorlease bench compare
  quorlease bench compare --require redis-memory,redis-always,ratelimit --html page.html
  quorlease bench compare --quick -o json`
)

// Options are the flags of `bench compare`.
type Options struct {
	compare.Config

	// HTML is the file to write a page to. Empty: none.
	HTML string

	distribution, data string
	quick              bool
}

// Define adds the flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	o.Config = compare.Default()
	c := &o.Config
	flags.IntVar(&c.Callers, "callers", c.Callers, "how `many` ask at the same time, 1 to 4096")
	flags.IntVar(&c.Keys, "keys", c.Keys, "how `many` keys they ask for, 1 to 10000")
	flags.StringVar(&o.distribution, "distribution", string(c.Distribution),
		"how they choose keys, by `name`: hot (all the same), uniform, zipf")
	flags.Float64Var(&c.PacedRate, "paced-rate", c.PacedRate, "how `many` questions a second the open loop asks")
	flags.IntVar(&c.Rounds, "rounds", c.Rounds, "how `many` rounds, each of everybody, 1 to 100")
	flags.DurationVar(&c.Warmup, "warmup", c.Warmup, "part of a side's turn that is not counted")
	flags.DurationVar(&c.Length, "length", c.Length, "part of it that is")
	flags.BoolVar(&o.quick, "quick", false, "one short round, to see that everything works; no figure of it says anything")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "`number` that keys and arrivals are drawn by")
	flags.StringVar(&c.Peers, "peers", "", "`directory` to look for programs of others in first")
	flags.StringSliceVar(&c.Require, "require", nil,
		"end with exit code 1 before anything runs where one of these `systems` is not there: "+
			strings.Join(compare.Names(), ", "))
	flags.StringSliceVar(&c.Without, "without", nil, "leave these `systems` out")
	flags.StringVar(&o.data, "data", "",
		"`directory` to make one for everybody's files in, which is removed in the end; else the system's for such things")
	flags.StringVar(&o.HTML, "html", "", "write one page with plots to this `file`")
	setting.Range(flags, "callers", "1 to 4096")
	setting.Range(flags, "keys", "1 to 10000")
	setting.Range(flags, "rounds", "1 to 100")
}

// Complete checks the flags and fills in the run. changed says which were given.
func (o *Options) Complete(changed func(flag string) bool) error {
	c := &o.Config
	c.Distribution = stat.Distribution(o.distribution)
	if o.quick {
		for _, flag := range []string{"rounds", "warmup", "length"} {
			if changed(flag) {
				return exit.Usagef("--%s does not go with --quick, which sets it", flag)
			}
		}
		c.Quick()
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
	err = outcome.Within(o.data, "compare", func(dir, program string) (err error) {
		o.Dir, o.Binary = dir, program
		result, err = compare.Run(ctx, o.Config)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	answer, err = outcome.Print(result, asJSON)
	return answer, result, err
}

// Finish writes the page where one was asked for. The error has a line for each
// bound that was missed.
func (o *Options) Finish(r *page.Result) error {
	if err := outcome.Write("html", o.HTML, r.HTML); err != nil {
		return err
	}
	return outcome.Missed(r.Missed())
}
