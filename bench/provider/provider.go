package provider

import "time"

// RefusalTime is how long a provider takes to say no.
const RefusalTime = 50 * time.Millisecond

// The dimensions that a provider counts.
const (
	Requests     = "requests"
	InputTokens  = "input_tokens"
	OutputTokens = "output_tokens"
)

// Call is what one request uses, as the provider estimates it when it arrives.
type Call struct{ Input, Output int64 }

// Reason says why a call was refused, where it was not for a dimension that is
// counted.
type Reason string

// What refuses besides a dimension. Exhausted is empty: a dimension is used up,
// and Answer.Binding names it.
const (
	Exhausted  Reason = ""
	SlowDown   Reason = "slow_down"
	SpendCap   Reason = "spend_cap"
	Concurrent Reason = "concurrent"
	Daily      Reason = "daily"
)

// Answer is what a provider says of one call.
type Answer struct {
	OK bool
	// Reason says whether something other than a dimension refused.
	Reason Reason
	// RetryAfter is what the header of that name says: the time until the call
	// would fit if nobody else asked, in whole seconds, rounded up. 0 where it was
	// admitted, and where it never would be.
	RetryAfter time.Duration
	// Binding is the dimension that the call has to wait for longest. Empty where
	// it was admitted.
	Binding string
	// Remaining is what the headers say is left after the decision.
	Remaining Remaining
}

// Remaining is rounded down. A dimension that the model does not count has -1.
type Remaining struct{ Requests, Input, Output int64 }

// Model is one account at a provider. now never goes back.
type Model interface {
	Ask(now time.Duration, call Call) Answer
}

// wholeSeconds rounds a wait up, to a second at least.
func wholeSeconds(wait time.Duration) time.Duration {
	return max(1, (wait+time.Second-1)/time.Second) * time.Second
}

// Limits are what an account may use a minute. 0: the dimension is not counted.
// At most 10^8.
type Limits struct{ Requests, Input, Output int64 }
