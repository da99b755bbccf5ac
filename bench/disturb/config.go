package disturb

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Config says what to do.
type Config struct {
	// Binary is the program that nodes run in.
	Binary string
	// Dir is where the nodes' data goes, removed by the caller.
	Dir string
	// Seed of the arrivals and of the keys.
	Seed uint64
	// Callers of the closed loop by which it is found out how much is granted at most, 1 to
	// 10,000. Searches is how often that is then halved towards the most that an open loop
	// can have, 0 to 20, a Measured each; Part is the part of it which is asked for in the
	// end, above 0 and at most 1.
	Callers, Searches int
	Part              float64
	// Measured is how long the load is measured, Calm how long the open loop goes on
	// undisturbed, each after a Warmup.
	Warmup, Measured, Calm time.Duration
	// Kills is for how long the leader is killed every KillEvery, and stays away for Away.
	Kills, KillEvery, Away time.Duration
	// Hang is for how long a node is stopped or cut off.
	Hang time.Duration
	// Settle lies behind each of these, and counts as a part of it.
	Settle time.Duration
	// Hasty: too short for any figure to be held to its bound. Guarantees are.
	Hasty bool
	// Progress gets a line now and then, Log what the nodes say. Nil: nobody.
	Progress, Log io.Writer
}

// Default is a run of three minutes.
func Default() Config {
	return Config{
		Seed: 1, Callers: 128, Searches: 5, Part: 0.5,
		Warmup: 2 * time.Second, Measured: 3 * time.Second, Calm: 10 * time.Second,
		Kills: 2 * time.Minute, KillEvery: 5 * time.Second, Away: 2 * time.Second,
		Hang: 5 * time.Second, Settle: 2 * time.Second,
	}
}

// Quick makes it one that shows that everything works, and no figure: a few seconds.
func (c *Config) Quick() {
	c.Hasty, c.Part, c.Callers, c.Searches = true, 0.1, 16, 1
	c.Warmup, c.Measured, c.Calm = 300*time.Millisecond, 200*time.Millisecond, 500*time.Millisecond
	c.Kills, c.KillEvery, c.Away = 2*time.Second, 2*time.Second, 500*time.Millisecond
	c.Hang, c.Settle = 300*time.Millisecond, 100*time.Millisecond
}

// The ends of the ranges.
const (
	callersMost  = 10_000
	searchesMost = 20
	lengthMost   = time.Hour
	shortestKill = 500 * time.Millisecond
)

// Validate returns every problem, joined.
func (c *Config) Validate() error {
	var errs []error
	if c.Callers < 1 || c.Callers > callersMost {
		errs = append(errs, fmt.Errorf("callers: %d is outside 1 to %d", c.Callers, callersMost))
	}
	if c.Searches < 0 || c.Searches > searchesMost {
		errs = append(errs, fmt.Errorf("searches: %d is outside 0 to %d", c.Searches, searchesMost))
	}
	if !(c.Part > 0 && c.Part <= 1) {
		errs = append(errs, fmt.Errorf("part: %g is outside 0 to 1", c.Part))
	}
	for _, one := range []struct {
		name        string
		value, most time.Duration
	}{
		{"measured", c.Measured, lengthMost},
		{"calm", c.Calm, lengthMost},
		{"kills", c.Kills, lengthMost},
		{"hang", c.Hang, time.Minute},
		{"kill every", c.KillEvery, c.Kills},
		{"away", c.Away, c.KillEvery},
	} {
		if one.value <= 0 || one.value > one.most {
			errs = append(errs, fmt.Errorf("%s: %v is outside 0s to %v", one.name, one.value, one.most))
		}
	}
	if c.KillEvery < shortestKill {
		errs = append(errs, fmt.Errorf("kill every: %v is shorter than %v", c.KillEvery, shortestKill))
	}
	if c.Warmup < 0 || c.Settle < 0 {
		errs = append(errs, fmt.Errorf("warmup %v, settle %v: negative", c.Warmup, c.Settle))
	}
	return errors.Join(errs...)
}
