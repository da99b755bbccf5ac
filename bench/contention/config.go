package contention

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench/stat"
)

// Path is a way to ask.
type Path string

// The paths.
const (
	// Unary: one call an acquire.
	Unary Path = "unary"
	// Session: all callers share one stream; whoever waits travels in one message.
	Session Path = "session"
	// Client: all callers share one client, with all that it does beside asking.
	Client Path = "client"
	// Limiter: permits from blocks of tokens that one client holds.
	Limiter Path = "limiter"
)

// paths are all of them. What a new one needs is an asker in authority.Asker, and
// what its echo is in startEcho.
var paths = []Path{Unary, Session, Client, Limiter}

func pathNames() []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = string(path)
	}
	return names
}

// Config says what to run. Each problem that Validate finds names the field as the
// command line calls it.
type Config struct {
	// Binary is the program that nodes and the echo run in. Its subcommands are
	// `serve` and `bench echo-server`.
	Binary string
	// Dir is where the nodes' data goes, removed by the caller.
	Dir string
	// Version is noted in the result.
	Version string
	// Endpoints are client addresses of a cluster that is measured instead. Its
	// nodes are left alone: no fault, no log, no processor time.
	Endpoints []string

	Path         Path
	Callers      int
	Keys         int
	Distribution stat.Distribution
	// Rate is how many starts a second an open loop means to have over all callers.
	// 0: a closed loop, in which each caller asks again at once.
	Rate     float64
	Arrivals stat.Arrivals
	// Timeout is the longest that one call may take.
	Timeout time.Duration
	// Seed of the keys and of the arrivals.
	Seed uint64

	// Rounds, each of a Warmup that is not counted and Length, on both sides.
	Rounds         int
	Warmup, Length time.Duration
	// Echo measures the bare echo too.
	Echo bool

	// OnLoss is what the limit says a client does while nobody answers: open or
	// closed.
	OnLoss string

	// Exact: the limit gives no escrow, so that every grant is an entry's.
	Exact bool

	// LimitRate tokens a second and LimitBurst tokens are what each key has.
	LimitRate, LimitBurst int64

	Faults Faults

	// Progress gets a line now and then, NodeLog what the nodes say. Nil: nobody.
	Progress, NodeLog io.Writer
}

// Nodes is how many node processes a run starts.
const Nodes = 3

// Default is a run of less than a minute.
func Default() Config {
	return Config{
		Path: Session, Callers: 128, Keys: 100, Distribution: stat.Zipf, Arrivals: stat.Poisson,
		Timeout: 2 * time.Second, Seed: 1,
		Rounds: 3, Warmup: time.Second, Length: 5 * time.Second, Echo: true,
		LimitRate: 1000, LimitBurst: 1000, OnLoss: "open",
		Faults: Faults{LoseQuorumFor: 3 * time.Second},
	}
}

// onLoss are the values of OnLoss. A share would be as small as this one client's
// part, and say little.
var onLoss = map[string]quorleasev1.FallbackMode{
	"open": quorleasev1.FallbackMode_OPEN_ON_LOSS, "closed": quorleasev1.FallbackMode_CLOSED_ON_LOSS,
}

// The ends of the ranges.
const (
	callersMost = 10_000
	keysMost    = 100_000
	roundsMost  = 100
	lengthMost  = time.Hour
	rateMost    = 10_000_000
	tokensMost  = 1 << 53
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
	if !slices.Contains(paths, c.Path) {
		errs = append(errs, fmt.Errorf("--path %q is none of %s", c.Path, strings.Join(pathNames(), ", ")))
	}
	if onLoss[c.OnLoss] == 0 {
		errs = append(errs, fmt.Errorf("--on-quorum-loss %q is none of open, closed", c.OnLoss))
	}
	within("callers", int64(c.Callers), 1, callersMost)
	within("keys", int64(c.Keys), 1, keysMost)
	within("rounds", int64(c.Rounds), 1, roundsMost)
	within("limit-rate", c.LimitRate, 0, tokensMost)
	within("limit-burst", c.LimitBurst, 1, tokensMost)
	lasting("warmup", c.Warmup, 0)
	lasting("length", c.Length, 100*time.Millisecond)
	lasting("timeout", c.Timeout, time.Millisecond)
	// Whatever is no number is outside, too.
	if !(c.Rate >= 0 && c.Rate <= rateMost) {
		errs = append(errs, fmt.Errorf("--rate %g is outside 0 to %d", c.Rate, rateMost))
	}
	if _, err := stat.NewChooser(c.Distribution, 1, nil); err != nil {
		errs = append(errs, fmt.Errorf("--%w", err))
	}
	if c.Arrivals != stat.Poisson && c.Arrivals != stat.Even {
		errs = append(errs, fmt.Errorf("--arrivals %q is none of %s, %s", c.Arrivals, stat.Poisson, stat.Even))
	}
	errs = append(errs, c.Faults.problems(c)...)
	return errors.Join(errs...)
}
