// Package measuring turns a command line into a run of every measure.
package measuring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/compare"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/whole"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/outcome"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// Long and Example are the command's help.
const (
	Long = `Measure every figure that this program holds itself to, one part after the other,
and show all of them in one table: beside what people run today, in the client's
own memory, by nodes, keys, callers and snapshots, through a gateway, and while
members come and go. Every part is a command of its own, or a measure that has
no other.

It starts every process by itself, on free ports of loopback and in a temporary
directory, and ends them. What is not there, or can't be had without root, is
"not measured" and says why; what --require names is an error before anything
runs.

Without flags it takes some 35 minutes. Progress goes to standard error. Exit
code 1 means that a guarantee broke, that a bound was missed, or that one that
is required was not measured; each is named.`

	Example = `  quorlease bench all --html page.html --json result.json
  quorlease bench all --require redis-memory,redis-always,ratelimit
  quorlease bench all --only compare,local --markdown README.md
  quorlease bench all --quick`
)

// Options are the flags of `bench all`.
type Options struct {
	whole.Config

	// HTML, JSON and Markdown are files to write to. Empty: none.
	HTML, JSON, Markdown string

	data  string
	quick bool
}

// Define adds the flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	o.Config = whole.Default()
	c := &o.Config
	flags.StringSliceVar(&c.Only, "only", nil,
		"the `names` of the parts to run, else all: "+strings.Join(whole.Names(), ", "))
	flags.IntVar(&c.Rounds, "rounds", c.Rounds, "how `many` rounds each part has, 1 to 100")
	flags.IntVar(&c.Cycles, "cycles", c.Cycles, "how `many` times members come and go, 1 to 1000")
	flags.BoolVar(&o.quick, "quick", false,
		"one short round of what can be short, to see that everything works; no figure of it says anything")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "`number` that keys, arrivals and the moments of kills are drawn by")
	flags.StringVar(&c.Peers, "peers", "", "`directory` to look for programs of others in first")
	flags.StringSliceVar(&c.Require, "require", nil,
		"end with exit code 1 where one of these `systems` is not there or can't be measured: "+
			strings.Join(compare.Names(), ", "))
	flags.StringSliceVar(&c.Without, "without", nil, "leave these `systems` out")
	flags.StringVar(&o.data, "data", "",
		"`directory` to make one for everybody's files in, which is removed in the end; else the system's for such things")
	flags.StringVar(&o.HTML, "html", "", "write one page with plots to this `file`")
	flags.StringVar(&o.JSON, "json", "", "write the result to this `file`, as -o json prints it")
	flags.StringVar(&o.Markdown, "markdown", "",
		"write the tables to this `file`, between the two lines that it has for them; an empty one gets both")
	setting.Range(flags, "rounds", "1 to 100")
	setting.Range(flags, "cycles", "1 to 1000")
}

// Complete checks the flags and fills in the run. changed says which were given.
func (o *Options) Complete(changed func(flag string) bool) error {
	c := &o.Config
	if o.quick {
		for _, flag := range []string{"rounds", "cycles"} {
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
func (o *Options) Answer(ctx context.Context, asJSON bool) (answer []byte, result *whole.Result, err error) {
	for flag, path := range map[string]string{"html": o.HTML, "json": o.JSON, "markdown": o.Markdown} {
		if err := outcome.Writable(flag, path); err != nil {
			return nil, nil, err
		}
	}
	if _, err := o.document(); err != nil {
		return nil, nil, err
	}
	// In a directory of its own, which is removed.
	err = outcome.Within(o.data, "all", func(dir, program string) (err error) {
		o.Dir, o.Binary = dir, program
		result, err = whole.Run(ctx, o.Config)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	answer, err = outcome.Print(result, asJSON)
	return answer, result, err
}

// Finish writes the files that were asked for. The error has a line for each thing that
// is not as it must be.
func (o *Options) Finish(r *whole.Result) error {
	before, err := o.document()
	if err = errors.Join(
		err, outcome.Write("html", o.HTML, r.HTML), outcome.Write("json", o.JSON, r.JSON),
	); err != nil {
		return err
	}
	if err := outcome.Write("markdown", o.Markdown, func(w io.Writer) error {
		_, err := io.WriteString(w, r.Sheet().Into(before))
		return err
	}); err != nil {
		return err
	}
	return outcome.Missed(r.Missed)
}

// document is the file that the tables go into, as it is.
func (o *Options) document() (string, error) {
	if o.Markdown == "" {
		return "", nil
	}
	text, err := os.ReadFile(o.Markdown)
	if err == nil {
		err = sheet.Fits(string(text))
	}
	if err != nil {
		return "", fmt.Errorf("--markdown: %w", err)
	}
	return string(text), nil
}
