package compare

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/stat"
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
	// Peers is a directory to look for others' programs in first. Empty: none.
	Peers string
	// Require are systems without which there is no run, Without those of others that
	// are left out.
	Require, Without []string

	Callers      int
	Keys         int
	Distribution stat.Distribution
	// PacedRate is how many questions a second the open loop asks.
	PacedRate float64
	// Timeout is the longest that one call may take.
	Timeout time.Duration
	Seed    uint64
	// Rounds, each of a Warmup that is not counted and Length, of every side.
	Rounds         int
	Warmup, Length time.Duration

	// Hasty: the run is too short for any figure to be held to its bound.
	Hasty bool

	// Progress gets a line now and then, Log what the processes say. Nil: nobody.
	Progress, Log io.Writer

	// onTime is load.Config's.
	onTime func() (stop func())
}

// Default is a run of some four minutes.
func Default() Config {
	return Config{
		Callers: 128, Keys: 100, Distribution: stat.Uniform, PacedRate: 10_000, Timeout: 5 * time.Second, Seed: 1,
		Rounds: 5, Warmup: 500 * time.Millisecond, Length: 2 * time.Second,
	}
}

// Quick makes it one that shows that everything works, and no figure.
func (c *Config) Quick() {
	c.Hasty, c.Rounds, c.Warmup, c.Length = true, 1, 50*time.Millisecond, 200*time.Millisecond
}

// The buckets that everybody keeps. Those of the load never run out, and they
// refill faster than anybody asks; those of the trial are to be emptied. In haste that has
// to come to an end on a machine where a bucket gets a dozen commits a second, too.
const (
	loadBurst, loadRate   = 10_000_000, 1_000_000
	trialBurst, trialRate = 1000, 40
	hastyBurst, hastyRate = 400, 4
	trialKeys             = 4
)

func (c *Config) buckets() (loaded, tried peer.Bucket) {
	tried = peer.Bucket{Name: "trial", Burst: trialBurst, PerSecond: trialRate, Keys: trialKeys}
	if c.Hasty {
		tried.Burst, tried.PerSecond = hastyBurst, hastyRate
	}
	return peer.Bucket{Name: "load", Burst: loadBurst, PerSecond: loadRate, Keys: c.Keys}, tried
}

// spare is the time beside the rounds for which grants are noted: starting, trials.
const spare = 10 * time.Minute

// lasting is how long a run may take, for those who have to know beforehand.
func (c *Config) lasting() time.Duration {
	sides := 0
	for _, e := range entrants() {
		sides += len(e.sides)
	}
	return time.Duration(c.Rounds*sides)*(c.Warmup+c.Length+time.Second) + spare
}

// Takes is about how long a run takes with everybody there.
func (c *Config) Takes() time.Duration {
	sides := 0
	for _, e := range entrants() {
		sides += len(e.sides)
	}
	return time.Duration(c.Rounds*sides)*(c.Warmup+c.Length+200*time.Millisecond) + time.Minute
}

// The ends of the ranges.
const (
	callersMost = 4096
	keysMost    = 10_000
	roundsMost  = 100
	lengthMost  = time.Minute
	pacedMost   = 1_000_000
)

// Names are the systems of others.
func Names() (names []string) {
	for _, e := range theirs() {
		names = append(names, e.name)
	}
	return names
}

// Validate returns every problem, joined.
func (c *Config) Validate() error {
	var errs []error
	within := func(flag string, value, least, most int64) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("--%s %d is outside %d to %d", flag, value, least, most))
		}
	}
	lasting := func(flag string, value, least, most time.Duration) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("--%s %v is outside %v to %v", flag, value, least, most))
		}
	}
	within("callers", int64(c.Callers), 1, callersMost)
	within("keys", int64(c.Keys), 1, keysMost)
	within("rounds", int64(c.Rounds), 1, roundsMost)
	lasting("warmup", c.Warmup, 0, lengthMost)
	lasting("length", c.Length, 100*time.Millisecond, lengthMost)
	lasting("timeout", c.Timeout, time.Millisecond, lengthMost)
	// Whatever is no number is outside, too.
	if !(c.PacedRate >= 1 && c.PacedRate <= pacedMost) {
		errs = append(errs, fmt.Errorf("--paced-rate %g is outside 1 to %d", c.PacedRate, pacedMost))
	}
	if _, err := stat.NewChooser(c.Distribution, 1, nil); err != nil {
		errs = append(errs, fmt.Errorf("--%w", err))
	}
	for flag, names := range map[string][]string{"require": c.Require, "without": c.Without} {
		for _, name := range names {
			if !slices.Contains(Names(), name) {
				errs = append(errs, fmt.Errorf("--%s %q is none of %s", flag, name, strings.Join(Names(), ", ")))
			}
		}
	}
	for _, name := range c.Require {
		if slices.Contains(c.Without, name) {
			errs = append(errs, fmt.Errorf("--without %s: --require asks for it", name))
		}
	}
	return errors.Join(errs...)
}
