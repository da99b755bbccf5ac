package front

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Config says how often and how long.
type Config struct {
	// Binary is the program that nodes, the gateway and the proxy run in.
	Binary string
	// Dir is where everybody's files go, removed by the caller.
	Dir string
	// Rounds, each of everything for Length after a Warmup. 1 to 100.
	Rounds         int
	Warmup, Length time.Duration
	// Callers have a connection each, 1 to 1000.
	Callers int
	// Paced is how many calls a second all of them begin where they do not ask as fast
	// as they can, Storm how many a client's that storms, and Others everybody else's
	// meanwhile. 1 to 100,000 each.
	Paced, Storm, Others float64
	// Steady is for how long the client storms without a pause for the gateway's memory to
	// be looked at, from a fifth of it on. Up to a day.
	Steady time.Duration
	// Fill is for how long a limit is used as far as it goes.
	Fill time.Duration
	// Timeout is the longest that one call may take.
	Timeout time.Duration
	Seed    uint64
	// Hasty: too short for any figure to be held to its bound.
	Hasty bool
	// Progress gets a line a round, Log what the processes print, all of them at once. Nil:
	// nobody.
	Progress, Log io.Writer
}

// Default is a run of a quarter of an hour, most of which a client storms.
func Default() Config {
	return Config{
		Rounds: 5, Warmup: time.Second, Length: 4 * time.Second, Callers: 64, Paced: 500,
		Storm: 200, Others: 200, Steady: 10 * time.Minute, Fill: 25 * time.Second, Timeout: 5 * time.Second, Seed: 1,
	}
}

// Quick makes it one that shows that everything works, and no figure.
func (c *Config) Quick() {
	c.Hasty, c.Rounds, c.Warmup, c.Length = true, 1, 300*time.Millisecond, 300*time.Millisecond
	c.Steady, c.Fill = time.Second, time.Second
}

// startTakes is about how long it takes until everything is ready.
const startTakes = 5 * time.Second

// Takes is about how long a run takes.
func (c *Config) Takes() time.Duration {
	turns := time.Duration(c.Rounds) * time.Duration(len(sides)+2)
	return startTakes + turns*(c.Warmup+c.Length) + c.Steady + c.Warmup + c.Fill
}

// Validate returns every problem, joined.
func (c *Config) Validate() error {
	var errs []error
	within := func(name string, value, least, most float64) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("%s %g is outside %g to %g", name, value, least, most))
		}
	}
	within("rounds", float64(c.Rounds), 1, 100)
	within("callers", float64(c.Callers), 1, 1000)
	within("paced", c.Paced, 1, 1e5)
	within("storm", c.Storm, 1, 1e5)
	within("others", c.Others, 1, 1e5)
	for _, one := range []struct {
		name               string
		value, least, most time.Duration
	}{
		{"warmup", c.Warmup, 0, time.Minute},
		{"length", c.Length, 100 * time.Millisecond, time.Minute},
		{"steady", c.Steady, time.Second, 24 * time.Hour},
		{"fill", c.Fill, time.Second, time.Hour},
		{"timeout", c.Timeout, time.Millisecond, time.Minute},
	} {
		if one.value < one.least || one.value > one.most {
			errs = append(errs, fmt.Errorf("%s %v is outside %v to %v", one.name, one.value, one.least, one.most))
		}
	}
	return errors.Join(errs...)
}
