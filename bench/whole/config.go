package whole

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/compare"
	"github.com/quorlease/quorlease/bench/front"
	"github.com/quorlease/quorlease/bench/scale"
)

// Config says what to run. Each problem that Validate finds names the field as the
// command line calls it.
type Config struct {
	// Binary is the program that nodes and the echo run in.
	Binary string
	// Dir is where everybody's files go, removed by the caller.
	Dir string
	// Version is noted in the result.
	Version string

	// Only are the names of the parts that are run, in their own order. Empty: all.
	Only []string
	// Peers is a directory to look for others' programs in first, Require are systems
	// without which there is no run, Without those that are left out.
	Peers            string
	Require, Without []string
	// Rounds of every part that has some. 0: five.
	Rounds int
	// Cycles is how often members come and go.
	Cycles int
	// Timeout is the longest that one call may take.
	Timeout time.Duration
	Seed    uint64
	// Hasty: a run that shows that everything works, and no figure.
	Hasty bool

	// Progress is told what runs, and for how long yet, Log what the processes say. Nil:
	// nobody.
	Progress, Log io.Writer
}

const (
	roundsMost = 100
	cyclesMost = 1000
)

// Default runs everything.
func Default() Config {
	return Config{Rounds: 5, Cycles: 20, Timeout: 5 * time.Second, Seed: 1}
}

// Quick makes it a run that shows that everything works, and no figure. The parts that
// take long whatever is asked of them are left out, where none is named.
func (c *Config) Quick() {
	c.Hasty, c.Rounds, c.Cycles = true, 1, 1
	if len(c.Only) > 0 {
		return
	}
	for _, p := range Parts() {
		if !p.Long {
			c.Only = append(c.Only, p.Name)
		}
	}
}

// Names are those of all parts.
func Names() (names []string) {
	for _, p := range Parts() {
		names = append(names, p.Name)
	}
	return names
}

// chosen are the parts that are run.
func (c *Config) chosen(all []Part) []Part {
	if len(c.Only) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(p Part) bool { return !slices.Contains(c.Only, p.Name) })
}

// Validate returns every problem, joined.
func (c *Config) Validate() error {
	var errs []error
	for _, name := range c.Only {
		if !slices.Contains(Names(), name) {
			errs = append(errs, fmt.Errorf("--only %q is none of %s", name, strings.Join(Names(), ", ")))
		}
	}
	if c.Cycles < 1 || c.Cycles > cyclesMost {
		errs = append(errs, fmt.Errorf("--cycles %d is outside 1 to %d", c.Cycles, cyclesMost))
	}
	// The rest is the comparison's to say.
	own := c.compare()
	return errors.Join(append(errs, own.Validate())...)
}

func (c *Config) compare() compare.Config {
	one := compare.Default()
	if c.Hasty {
		one.Quick()
	}
	one.Binary, one.Dir, one.Version, one.Progress, one.Log = c.Binary, c.Dir, c.Version, c.Progress, c.Log
	one.Peers, one.Require, one.Without = c.Peers, c.Require, c.Without
	one.Rounds, one.Timeout, one.Seed = c.Rounds, c.Timeout, c.Seed
	return one
}

func (c *Config) scale() scale.Config {
	one := scale.Default()
	if c.Hasty {
		one.Quick()
	}
	one.Binary, one.Dir, one.Version, one.Progress, one.Log = c.Binary, c.Dir, c.Version, c.Progress, c.Log
	one.Rounds, one.Timeout, one.Seed = c.Rounds, c.Timeout, c.Seed
	return one
}

func (c *Config) front() front.Config {
	one := front.Default()
	if c.Hasty {
		one.Quick()
	}
	one.Binary, one.Dir, one.Progress, one.Log = c.Binary, c.Dir, c.Progress, c.Log
	one.Rounds, one.Timeout, one.Seed = c.Rounds, c.Timeout, c.Seed
	return one
}
