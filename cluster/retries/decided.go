package retries

import logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"

// DecidedHere reports whether the node that was asked decided an acquire by itself, from
// its copy of the retry budgets: without an entry.
func DecidedHere(result *logv1.AcquireResult) bool {
	if len(result.GetDenials()) == 0 {
		return false
	}
	reason := result.GetDenials()[0].GetReason()
	return reason == logv1.Reason_REASON_ATTEMPTS || reason == logv1.Reason_REASON_RETRY_BUDGET
}
