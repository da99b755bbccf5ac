package scale

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/share"
)

// Part is a part of the measure.
type Part string

// The parts.
const (
	// Nodes: as many nodes as it says, at a share of a processor each.
	Nodes Part = "nodes"
	// Keys: three nodes, as many active buckets as it says.
	Keys Part = "keys"
	// Callers: three nodes, as many callers as it says.
	Callers Part = "callers"
	// Entries: three nodes that grant steadily, and what that writes to the log.
	Entries Part = "entries"
	// Snapshots: three nodes that take snapshots of a state of as many buckets.
	Snapshots Part = "snapshots"
)

var parts = []Part{Nodes, Keys, Callers, Entries, Snapshots}

// Config says what to run. Each problem that Validate finds names the field as the
// command line calls it.
type Config struct {
	// Binary is the program that nodes run in.
	Binary string
	// Dir is where the nodes' data goes, removed by the caller.
	Dir string
	// Version is noted in the result.
	Version string
	// Mount is where the kernel's control groups are.
	Mount string

	// Parts are those that are run.
	Parts []Part
	// Nodes, Keys, Callers and Buckets are the places on the axes of the parts.
	Nodes, Keys, Callers, Buckets []int
	// Share of a processor that each node of the first part has, in hundredths of a
	// percent.
	Share int64
	// Steady is how many grants a second are asked for where entries are counted.
	Steady float64
	// Timeout is the longest that one call may take.
	Timeout time.Duration
	Seed    uint64
	// Rounds, each of a Warmup that is not counted and Length, of every point.
	Rounds         int
	Warmup, Length time.Duration

	// Hasty: the run is too short for any figure to be held to its bound.
	Hasty bool

	// Progress gets a line now and then, Log what the nodes say. Nil: nobody.
	Progress, Log io.Writer
}

// Default is a run of less than five minutes.
func Default() Config {
	return Config{
		Mount: share.Mount, Parts: slices.Clone(parts),
		Nodes: []int{1, 3, 5, 7}, Keys: []int{1, 1000, 100_000, 1_000_000}, Callers: []int{1, 16, 128, 1024, 4096},
		Buckets: []int{1000, 100_000, 1_000_000},
		Share:   share.Whole / 10, Steady: 100_000, Timeout: 5 * time.Second, Seed: 1,
		Rounds: 3, Warmup: time.Second, Length: 2 * time.Second,
	}
}

// Quick makes it one that shows that everything works, and no figure. The parts that
// take long whatever is asked of them are left out.
func (c *Config) Quick() {
	c.Hasty, c.Rounds, c.Warmup, c.Length = true, 1, 50*time.Millisecond, 200*time.Millisecond
	c.Parts, c.Steady = []Part{Nodes, Keys, Callers, Entries}, 1000
	c.Nodes, c.Keys, c.Callers = []int{1, 3}, []int{1, 1000}, []int{1, 16}
}

// The ends of the ranges.
const (
	nodesMost    = 9
	keysMost     = 1_000_000
	callersMost  = 10_000
	bucketsLeast = 1000
	roundsMost   = 100
	pointsMost   = 20
	lengthLeast  = 100 * time.Millisecond
	lengthMost   = time.Minute
	shareLeast   = share.Whole / 100
	steadyMost   = 1_000_000
)

// What the parts have in common with nobody.
const (
	// votersMost are those of any cluster; who is beyond is a learner.
	votersMost = 3
	// fewKeys are those of every part but that of keys.
	fewKeys = 100
	// nodeCallers ask each node of the first part: so many that one that may run for a
	// tenth of the time always has something to answer when it does.
	nodeCallers = 256
	// keysCallers are many, because first touches are entries, and an entry is the
	// cheaper the more wait for it.
	keysCallers = 1024
	// steadyCallers ask at their times.
	steadyCallers = 1024
	// snapshotCallers ask while snapshots are taken.
	snapshotCallers = 128
)

// Validate returns every problem, joined.
func (c *Config) Validate() error {
	var errs []error
	within := func(flag string, value, least, most int64) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("--%s %d is outside %d to %d", flag, value, least, most))
		}
	}
	lasting := func(flag string, value, least time.Duration) {
		if value < least || value > lengthMost {
			errs = append(errs, fmt.Errorf("--%s %v is outside %v to %v", flag, value, least, lengthMost))
		}
	}
	points := func(flag string, values []int, least, most int64) {
		for _, value := range values {
			within(flag, int64(value), least, most)
		}
		switch sorted := slices.Sorted(slices.Values(values)); {
		case len(values) == 0 || len(values) > pointsMost:
			errs = append(errs, fmt.Errorf("--%s has %d numbers, 1 to %d", flag, len(values), pointsMost))
		case len(slices.Compact(sorted)) < len(values):
			errs = append(errs, fmt.Errorf("--%s has a number twice", flag))
		}
	}
	names := make([]string, len(parts))
	for i, part := range parts {
		names[i] = string(part)
	}
	for _, part := range c.Parts {
		if !slices.Contains(parts, part) {
			errs = append(errs, fmt.Errorf("--parts %q is none of %s", part, strings.Join(names, ", ")))
		}
	}
	if len(c.Parts) == 0 {
		errs = append(errs, fmt.Errorf("--parts is empty: some of %s", strings.Join(names, ", ")))
	}
	points("nodes", c.Nodes, 1, nodesMost)
	points("keys", c.Keys, 1, keysMost)
	points("callers", c.Callers, 1, callersMost)
	points("buckets", c.Buckets, bucketsLeast, keysMost)
	if c.Share < shareLeast || c.Share > share.Whole {
		errs = append(errs, fmt.Errorf("--share %g%% is outside 1%% to 100%%", float64(c.Share)/shareLeast))
	}
	// Whatever is no number is outside, too.
	if !(c.Steady >= 1 && c.Steady <= steadyMost) {
		errs = append(errs, fmt.Errorf("--steady %g is outside 1 to %d", c.Steady, steadyMost))
	}
	within("rounds", int64(c.Rounds), 1, roundsMost)
	lasting("warmup", c.Warmup, 0)
	lasting("length", c.Length, lengthLeast)
	lasting("timeout", c.Timeout, time.Millisecond)
	return errors.Join(errs...)
}

// Takes is about how long a run takes.
func (c *Config) Takes() time.Duration {
	each := c.Warmup + c.Length
	takes := map[Part]time.Duration{
		Nodes: time.Duration(c.Rounds*len(c.Nodes)) * (each + 8*time.Second),
		Keys:  time.Duration(c.Rounds*len(c.Keys)) * (each + 6*time.Second), Snapshots: time.Minute,
		Callers: time.Duration(c.Rounds*len(c.Callers))*each + 5*time.Second,
		Entries: time.Duration(c.Rounds) * (each + 6*time.Second),
	}
	var sum time.Duration
	for _, part := range c.Parts {
		sum += takes[part]
	}
	return sum
}

func (c *Config) runs(part Part) bool { return slices.Contains(c.Parts, part) }
