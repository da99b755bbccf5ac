package limitsfile

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func (r *resolver) budget(b *quorleasev1.RetryBudget) *logv1.RetryBudget {
	r.problem("name", NameProblem(b.GetName()))
	r.problem("client", patternProblem(b.GetClient()))
	out := &logv1.RetryBudget{
		Name: b.GetName(), Client: b.GetClient(),
		MaxRetries: defaultMaxRetries, MaxFraction: defaultMaxFraction, MinRequests: defaultMinRequests,
		Window:     int64(r.duration("window", b.GetWindow(), defaultWindow, windowUnit, windowMax)),
		RetryAfter: int64(r.duration("retry_after", b.GetRetryAfter(), defaultRetryAfter, time.Millisecond, pauseMax)),
		Scope:      r.scope(b.GetScope()), Mode: r.enforcement(b.GetMode()),
		WarnFraction: defaultWarnFraction,
		WarnFor:      int64(r.duration("warn_for", b.GetWarnFor(), defaultWarnFor, 0, warnForMax)),
	}
	if b.WarnFractionBp != nil {
		out.WarnFraction = r.share("warn_fraction_bp", b.GetWarnFractionBp(), 0, bucket.Whole-1)
	}
	// A floor of none is no floor, however often it comes.
	if b.GetMinRetries() != nil {
		if amount, interval := r.rate("min_retries", b.GetMinRetries()); amount > 0 {
			out.MinRetries, out.MinRetriesInterval = amount, interval
		}
	}
	if b.MaxRetries != nil {
		out.MaxRetries = uint32(r.within("max_retries", int64(b.GetMaxRetries()), 0, retriesMax))
	}
	if b.MaxFractionBp != nil {
		// All of the requests being retries is no bound; leave the budget out then.
		out.MaxFraction = r.share("max_fraction_bp", b.GetMaxFractionBp(), 0, bucket.Whole-1)
	}
	if b.MinRequests != nil {
		out.MinRequests = r.within("min_requests", b.GetMinRequests(), 0, bucket.MaxTokens)
	}
	if w := time.Duration(out.GetWindow()); w%windowUnit != 0 {
		r.fail("window", "%v is not a multiple of %v", w, windowUnit)
	}
	if p := time.Duration(out.GetRetryAfter()); p%time.Millisecond != 0 {
		r.fail("retry_after", "%v is not a whole number of milliseconds", p)
	}
	return out
}

// patternProblem says why s is not a client's name or a prefix and a star.
func patternProblem(s string) string {
	if s == "" {
		return `missing: a client's name, a prefix and a star, or "*"`
	}
	if problem := ClientProblem(s); problem != "" {
		return problem
	}
	for i := range len(s) - 1 {
		if s[i] == '*' {
			return Quote(s) + ": a star may stand at the end only"
		}
	}
	return ""
}
