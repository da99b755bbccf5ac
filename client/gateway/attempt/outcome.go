package attempt

import (
	"fmt"
	"net/http"
)

// Outcome is how a request ended.
type Outcome uint8

// The outcomes. The same work is a retry after the first four.
const (
	// Throttled: the client was told that it is too much, by a provider or by a limit.
	Throttled Outcome = iota + 1
	// Failed: the provider failed, 5xx.
	Failed
	// TimedOut: nobody answered.
	TimedOut
	// Canceled: the client went away.
	Canceled
	// Succeeded: 2xx.
	Succeeded
	// Rejected: the request is wrong, another 4xx. It will be no better the next time, and
	// is no retry then.
	Rejected
	// Refused: the retry budget refused it. It leaves what is known of the work as it was:
	// a client that comes back when it was told to is not held against itself. Of one that
	// comes sooner the work is remembered for as long as it goes on.
	Refused
)

// retryable says whether the same work is a retry after it.
func (o Outcome) retryable() bool { return o >= Throttled && o <= Canceled }

// OutcomeOf is what an answer's status means. 408, 409 and 425 are asked again by SDKs
// like a failure.
func OutcomeOf(status int) Outcome {
	switch {
	case status == http.StatusTooManyRequests:
		return Throttled
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		return TimedOut
	case status == http.StatusConflict || status == http.StatusTooEarly || status >= 500:
		return Failed
	case status >= 400:
		return Rejected
	default:
		return Succeeded
	}
}

// Source is where an attempt's number comes from.
type Source uint8

// The sources.
const (
	// First: nothing says that it is a retry.
	First Source = iota
	// Declared: a marker says so.
	Declared
	// Inferred: the same work or id failed before.
	Inferred
	// Suspected: the client mostly fails, and sends another request for each failure.
	Suspected
)

// String is the word for metrics: "first", "declared", "inferred" or "suspected".
func (s Source) String() string {
	switch s {
	case First:
		return "first"
	case Declared:
		return "declared"
	case Inferred:
		return "inferred"
	case Suspected:
		return "suspected"
	default:
		return fmt.Sprintf("source %d", uint8(s))
	}
}
