package convert

import (
	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/tally"
)

// attempts checks what a client says it did by its permits.
func (c *checker) attempts(a *quorleasev1.Attempts) {
	for _, one := range []struct {
		field string
		count int64
		most  int64
	}{
		{"attempts.total", a.GetTotal(), tally.MaxCount},
		{"attempts.retries", a.GetRetries(), max(0, a.GetTotal())},
		{"attempts.throttled", a.GetThrottled(), tally.MaxCount},
		{"attempts.errors", a.GetErrors(), tally.MaxCount},
	} {
		if one.count < 0 || one.count > one.most {
			c.fail(one.field, "%d is out of range 0..%d", one.count, one.most)
		}
	}
	if text := a.GetError(); text != "" {
		if len(text) > tally.MaxFault {
			c.fail("attempts.error", "%d bytes, more than %d", len(text), tally.MaxFault)
		} else {
			c.problem("attempts.error", limitsfile.ClientProblem(text))
		}
	}
}

// Attempts is what a client did by its permits, for the retry budgets; ok is false
// where that is nothing.
func Attempts(r *quorleasev1.ReportRequest) (tried retries.Tried, ok bool) {
	a := r.GetAttempts()
	tried = retries.Tried{
		Count: tally.Count{Total: a.GetTotal(), Retries: a.GetRetries(), Throttled: a.GetThrottled()},
		Fault: tally.Fault{Text: a.GetError(), Times: a.GetErrors()},
	}
	return tried, tried.Count != tally.Count{}
}
