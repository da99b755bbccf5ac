package storm

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// Plan reckons what an account can carry, before anything is run.
type Plan struct {
	Limits provider.Limits
	// Task is what one task uses.
	Task provider.Call
	// Live tasks a minute come whatever else happens.
	Live float64
}

// PerMinute is how many tasks a minute the dimension would allow; 0 where it is
// not counted.
func (p Plan) PerMinute(dimension string) float64 {
	switch dimension {
	case provider.InputTokens:
		return float64(p.Limits.Input) / float64(p.Task.Input)
	case provider.OutputTokens:
		return float64(p.Limits.Output) / float64(p.Task.Output)
	default:
		return float64(p.Limits.Requests)
	}
}

// Binding is the dimension that allows fewest tasks.
func (p Plan) Binding() string {
	binding := provider.Requests
	for _, d := range []string{provider.InputTokens, provider.OutputTokens} {
		if p.PerMinute(d) < p.PerMinute(binding) {
			binding = d
		}
	}
	return binding
}

// Headroom is how many tasks a minute are left beside the live ones.
func (p Plan) Headroom() float64 { return p.PerMinute(p.Binding()) - p.Live }

// Spread is the window over which so many clients would have to spread one
// attempt each so that all of them fit into the headroom: what chance alone
// would have to do.
func (p Plan) Spread(clients int) time.Duration {
	return time.Duration(float64(clients) / p.Headroom() * float64(time.Minute))
}

// At is what is left for a backlog when the account is paced at so many tasks a
// minute, and how long the backlog takes.
func (p Plan) At(pace float64, backlog int) (perMinute float64, takes time.Duration) {
	perMinute = pace - p.Live
	return perMinute, time.Duration(float64(backlog) / perMinute * float64(time.Minute))
}

// Share is which part of a dimension's limit so many tasks a minute use, in
// percent.
func (p Plan) Share(dimension string, tasks float64) float64 {
	return 100 * tasks / p.PerMinute(dimension)
}

// nightly is the account of the nightly backfill: 400,000 input and 80,000 output
// tokens and 1,000 requests a minute, tasks of 2,500 and 300 tokens, and 72 live
// ones a minute.
func nightly() Plan {
	return Plan{
		Limits: provider.Limits{Requests: 1000, Input: 400_000, Output: 80_000},
		Task:   provider.Call{Input: 2500, Output: 300}, Live: 72,
	}
}
