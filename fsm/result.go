package fsm

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// Refused is a Refusal as an error: the question was not answered, and nothing
// has changed.
type Refused = refuse.Refused

func done() *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Done{Done: &logv1.Done{}}}
}

// wholeMillis rounds a wait up to whole milliseconds, at least one.
func wholeMillis(wait int64) int64 {
	const milli = int64(time.Millisecond)
	return max(1, wait/milli+min(1, wait%milli)) * milli
}
