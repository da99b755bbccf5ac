// Package contend turns a command line into a contention run and its bounds.
package contend

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/contention"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/outcome"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// Long and Example are the command's help.
const (
	Long = `Let many callers ask for the same few keys, beside a bare gRPC echo in
interleaved rounds, and check afterwards that the bounds held: G1 by the log of
a node that was stopped, G1 and G2 by the clients' clock.

It starts three node processes of this program in a temporary directory, and
ends them. With --endpoints on the command line (the environment does not count
here) it measures the cluster that is there: with a limit of its own, which it
deletes in the end, and without doing anything to the nodes.

Without flags it takes less than a minute. Progress goes to standard error.
Exit code 1 means that a guarantee broke or that a bound was missed.`

	Example = `  quorlease bench contention
  quorlease bench contention --path unary --distribution hot --max-p99 20ms
  quorlease bench contention --rate 5000 --length 20s --html page.html
  quorlease bench contention --kill-leader-every 5s --length 30s -o json`
)

// Options are the flags of `bench contention`.
type Options struct {
	contention.Config

	// HTML is the file to write a page to. Empty: none.
	HTML string

	path, distribution, arrivals string
	data, stopNode               string
	loseQuorumAt                 time.Duration
	noEcho                       bool

	minGrants, minRatio float64
	maxP99              time.Duration
}

// Define adds the flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	o.Config = contention.Default()
	c := &o.Config
	flags.StringVar(&o.path, "path", string(c.Path),
		"how callers ask, by `name`: unary; session, which all share; client, with all that it does for users; limiter, "+
			"which spends blocks of tokens that a client holds")
	flags.StringVar(&c.OnLoss, "on-quorum-loss", c.OnLoss,
		"what a client does while nobody answers, by `name`: open, closed")
	flags.IntVar(&c.Callers, "callers", c.Callers, "how `many` ask at the same time, 1 to 10000")
	flags.IntVar(&c.Keys, "keys", c.Keys, "how `many` keys they ask for, 1 to 100000")
	flags.StringVar(&o.distribution, "distribution", string(c.Distribution),
		"how they choose keys, by `name`: hot (all the same), uniform, zipf")
	flags.Float64Var(&c.Rate, "rate", 0,
		"open loop of this `many` calls a second, with latencies from the intended start; 0: closed, each asks again at once")
	flags.StringVar(&o.arrivals, "arrivals", string(c.Arrivals), "starts of an open loop, by `name`: poisson, even")
	flags.BoolVar(&c.Exact, "exact", c.Exact, "nodes hold nothing in escrow: every grant is a log entry's")
	flags.Int64Var(&c.LimitRate, "limit-rate", c.LimitRate, "`tokens` a second that each key has")
	flags.Int64Var(&c.LimitBurst, "limit-burst", c.LimitBurst, "burst of each key in `tokens`")
	flags.IntVar(&c.Rounds, "rounds", c.Rounds, "how `many` rounds, each of both sides; with a fault there is one")
	flags.DurationVar(&c.Warmup, "warmup", c.Warmup, "part of a round that is not counted")
	flags.DurationVar(&c.Length, "length", c.Length, "part of a round that is; with a fault 20s where it is not given")
	flags.BoolVar(&o.noEcho, "no-echo", false, "measure no bare gRPC echo beside it")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "`number` that keys and arrivals are drawn by")
	flags.StringVar(&o.data, "data", "",
		"`directory` to make one for the nodes' data in, which is removed in the end; else the system's for such things")
	flags.DurationVar(&c.Faults.KillLeaderEvery, "kill-leader-every", 0, "kill the leader this often; it comes back")
	flags.StringVar(&o.stopNode, "stop-node", "", "stop node N, 1 to 3, at a time, as in `N@T`: 2@5s; it stays away")
	flags.DurationVar(&o.loseQuorumAt, "lose-quorum-at", 0, "kill a majority at this time")
	flags.DurationVar(&c.Faults.LoseQuorumFor, "lose-quorum-for", c.Faults.LoseQuorumFor,
		"and start it again after this long")
	flags.Float64Var(&o.minGrants, "min-grants", 0, "exit code 1 below this many `grants` a second, median of the rounds")
	flags.DurationVar(&o.maxP99, "max-p99", 0, "exit code 1 above this p99, median of the rounds")
	flags.Float64Var(&o.minRatio, "min-ratio", 0,
		"exit code 1 below this `ratio` of decisions to echoes, median of the rounds")
	flags.StringVar(&o.HTML, "html", "", "write one page with plots to this `file`")
	setting.Range(flags, "callers", "1 to 10000")
	setting.Range(flags, "keys", "1 to 100000")
	setting.Range(flags, "rounds", "1 to 100")
}

// Complete checks the flags and fills in the run. changed says which were given.
func (o *Options) Complete(changed func(flag string) bool) error {
	c := &o.Config
	c.Path, c.Distribution = contention.Path(o.path), stat.Distribution(o.distribution)
	c.Arrivals, c.Echo = stat.Arrivals(o.arrivals), !o.noEcho
	if o.stopNode != "" {
		node, at, _ := strings.Cut(o.stopNode, "@")
		n, err := strconv.Atoi(node)
		when, errAt := time.ParseDuration(at)
		if err != nil || errAt != nil || n == 0 {
			return exit.Usagef("--stop-node %q is not N@T, such as 2@5s", o.stopNode)
		}
		c.Faults.StopNode, c.Faults.StopNodeAt = n, when
	}
	if changed("lose-quorum-at") {
		c.Faults.LoseQuorum, c.Faults.LoseQuorumAt = true, o.loseQuorumAt
	}
	if c.Faults.Any() {
		if !changed("rounds") {
			c.Rounds = 1
		}
		if !changed("length") {
			c.Length = 20 * time.Second
		}
	}
	if err := o.checkBounds(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	return nil
}

// checkBounds refuses bounds that nothing would ever miss: whoever gives one means
// it.
func (o *Options) checkBounds() error {
	for flag, value := range map[string]float64{"min-grants": o.minGrants, "min-ratio": o.minRatio} {
		if !(value >= 0) || math.IsInf(value, 1) {
			return exit.Usagef("--%s %g is not a number of at least 0", flag, value)
		}
	}
	if o.maxP99 < 0 {
		return exit.Usagef("--max-p99 %v is negative", o.maxP99)
	}
	if o.minRatio > 0 && o.noEcho {
		return exit.Usagef("--min-ratio needs the echo that --no-echo leaves out")
	}
	return nil
}

// Answer is what the command prints, and the result.
func (o *Options) Answer(ctx context.Context, asJSON bool) (answer []byte, result *report.Result, err error) {
	if result, err = o.Run(ctx); err != nil {
		return nil, nil, err
	}
	answer, err = outcome.Print(result, asJSON)
	return answer, result, err
}

// Run measures in a directory of its own, which it removes.
func (o *Options) Run(ctx context.Context) (result *report.Result, err error) {
	if err := outcome.Writable("html", o.HTML); err != nil {
		return nil, err
	}
	err = outcome.Within(o.data, "bench", func(dir, program string) (err error) {
		o.Dir, o.Binary = dir, program
		result, err = contention.Run(ctx, o.Config)
		return err
	})
	if err != nil {
		return nil, err
	}
	o.bound(result)
	return result, nil
}

// bound compares the medians with what the flags ask for.
func (o *Options) bound(r *report.Result) {
	note := func(flag string, want, got float64, ok bool) {
		r.Bounds = append(r.Bounds, report.Bound{Flag: flag, Want: want, Got: got, OK: ok})
	}
	if want := o.minGrants; want > 0 {
		got := r.Quorlease.GrantsPerSecond.Median
		note("min-grants", want, got, got >= want)
	}
	if o.maxP99 > 0 {
		want, got := float64(o.maxP99)/float64(time.Millisecond), r.Quorlease.P99.Median
		note("max-p99", want, got, got <= want)
	}
	if want := o.minRatio; want > 0 {
		got := r.Ratio.Median
		note("min-ratio", want, got, got >= want)
	}
	r.OK = len(r.Broken()) == 0
}

// Finish writes the page where one was asked for. The error has a line for each
// guarantee that broke and each bound that was missed.
func (o *Options) Finish(r *report.Result) error {
	if err := outcome.Write("html", o.HTML, r.HTML); err != nil {
		return err
	}
	return outcome.Missed(r.Broken())
}
