package gateways

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quorlease/quorlease/bench/storm"
)

// Storm is a storm that is played against whole gateways.
type Storm struct {
	// Slug names it on the command line.
	Slug string
	// Title is what happens, in a line; Text says more.
	Title, Text string
	// Twins are the scenarios of bench/storm that it is to be seen beside.
	Twins []string
	// Part is how much of it is worth playing where time matters.
	Part float64

	play func(ctx context.Context, h *House, o *storm.Outcome) error
}

// House is where storms are played, and how much of them.
type House struct {
	// Open sets a stage. close ends everything on it; it is called before another one is
	// opened.
	Open func(ctx context.Context, s *Setting) (stage Stage, close func() error, err error)
	// Pace is that of the stages.
	Pace int
	// Seed is what chance follows from.
	Seed uint64
	// Part is how much of the work is played, above 0 and at most 1. The storm keeps its
	// rates and its shape, and is over sooner.
	Part float64
	// Slack is what a machine adds to a wait, in the scenario's time. 0 in virtual time.
	Slack time.Duration
}

// All are the storms.
func All() []Storm {
	return []Storm{
		{
			Slug: "s3-after-gateway", Title: "the night after, through whole gateways",
			Text: "Three gateways and three nodes; 200 workers and live programs, which stream, send to them and never try " +
				"again. Limits as in s3-after.",
			Twins: []string{"s3-first-wave", "s3-sustained", "s3-after"}, Part: 1, play: nightAfter,
		},
		{
			Slug: "s3-faults-gateway", Title: "the same night, and a leader, a follower's network and a gateway fail",
			Text: "The leader is killed when a quarter is over and comes back a minute later; then a follower is cut off, " +
				"a gateway is killed with all leases that it holds, whose programs go on with another, and the majority " +
				"of nodes is gone for a while: gateways use their shares.",
			Twins: []string{"s3-after", "s3-faults"}, Part: 0.25, play: nightFaults,
		},
		{
			Slug: "s3-cap-gateway", Title: "an account whose money is used up",
			Text: "From a minute on the provider refuses for a spend cap, until five; an operator clears it at seven.",
			Part: 1, play: moneyEnds,
		},
		{
			Slug: "s3-growth-gateway", Title: "an account that may grow by half in a quarter of an hour",
			Text: "A limit of 160,000 tokens a minute, in three steps of 16 minutes, and at once.",
			Part: 1, play: growsInSteps,
		},
		{
			Slug: "s2-faults-gateway", Title: "the import, and a leader, a follower's network and an instance fail",
			Text: "As in s3-faults-gateway, but that the majority of nodes stays. Who waits for the instance that dies asks " +
				"the next one.",
			Twins: []string{"s2-ours"}, Part: 1, play: fleetFaults,
		},
		{
			Slug: "s1-budget-gateway", Title: "the batch job and three teams behind whole gateways",
			Text: "Limits have the retry budget and nothing else, and gateways neither try again nor open circuits. Once with " +
				"retries that say so, once with retries that don't, and once with gateways as they are by default.",
			Twins: []string{"s1-peak", "s1-budget"}, Part: 0.25, play: quotaBudget,
		},
		{
			Slug: "s1-fair-gateway", Title: "the same with a limit that guarantees the teams their part",
			Text: "Whole gateways, limits as in s1-fair: 330 requests a minute are the teams', the batch job waits in " +
				"the queue.",
			Twins: []string{"s1-reconciled", "s1-peak", "s1-fair"}, Part: 0.5, play: quotaFair,
		},
		{
			Slug: "s2-ours-gateway", Title: "the import of 2,000 jobs through whole gateways",
			Text: "Forty gateways, one for each instance; equal jobs come to the same one. Nine tenths of the provider's " +
				"limit for each tenant, 32 calls in flight.",
			Twins: []string{"s2-naive", "s2-seedgate", "s2-ours"}, Part: 1, play: fleetOurs,
		},
	}
}

// Find is the storm of that slug.
func Find(slug string) (Storm, bool) {
	for _, s := range All() {
		if s.Slug == slug {
			return s, true
		}
	}
	return Storm{}, false
}

// Run plays the storm. The error is of the stage: what was found is in the outcome.
func (s *Storm) Run(ctx context.Context, h *House) (*storm.Outcome, error) {
	o := &storm.Outcome{Slug: s.Slug, Title: s.Title, Text: s.Text, Twins: s.Twins}
	if err := s.play(ctx, h, o); err != nil {
		return nil, fmt.Errorf("play %s: %w", s.Slug, err)
	}
	o.Sum()
	return o, nil
}

// on plays f on a stage.
func (h *House) on(ctx context.Context, setting *Setting, f func(Stage) error) (err error) {
	stage, end, err := h.Open(ctx, setting)
	if err != nil {
		return fmt.Errorf("set the stage: %w", err)
	}
	defer func() {
		if closing := end(); err == nil && closing != nil {
			err = fmt.Errorf("clear the stage: %w", closing)
		}
	}()
	return f(stage)
}

// part is how much of some work is played.
func (h *House) part(n int) int { return max(1, int(math.Round(float64(n)*h.Part))) }

// span is how long something lasts that takes less time where less is played.
func (h *House) span(whole time.Duration) time.Duration {
	return time.Duration(float64(whole) * h.Part)
}

// time is a duration of the scenario as a process has to be told it, at least some time.
func (h *House) time(d, least time.Duration) time.Duration {
	return max(least, d/time.Duration(h.Pace))
}

// rate is so many a minute of the scenario, as a limits file says it.
func (h *House) rate(perMinute int64) string {
	return fmt.Sprintf("%d/%ds", perMinute, int64(h.time(time.Minute, time.Second)/time.Second))
}

// budgets are the retry budgets of a limits file: the usual one for everybody.
func (h *House) budgets() string {
	// A window has to be a multiple of three seconds.
	const step = 3 * time.Second
	window := (h.time(5*time.Minute, step) + step - 1) / step * step
	return fmt.Sprintf("retry_budgets: [{name: everybody, match: {client: \"*\"}, window: %v, retry_after: %v}]\n",
		window, h.time(time.Minute, time.Millisecond))
}
