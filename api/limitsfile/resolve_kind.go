package limitsfile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// slotsName is the one dimension of a concurrency limit.
const slotsName = "slots"

// Bounds of what else a limit can say.
const (
	overridesMax = 1000
	weightsMax   = 64
	weightMax    = 1000
	warnMax      = 16
)

// uncounted is the interval of a rate of nothing: slots and quotas don't refill.
const uncounted = int64(time.Second)

func kindOf(l *quorleasev1.Limit) logv1.Kind {
	switch {
	case l.Concurrency != nil:
		return logv1.Kind_KIND_CONCURRENCY
	case l.GetQuota() != nil:
		return logv1.Kind_KIND_QUOTA
	}
	return logv1.Kind_KIND_RATE
}

// unlimitedWithout and otherKindWithout are fields that have no meaning beside
// what a limit is, so that nobody believes in a limit that is not there (A06).
var (
	unlimitedWithout = []string{
		"dimensions", "concurrency", "quota", "classes", "target_bp", "adaptive", "ramp", "escrow", "queue", "overrides",
	}
	otherKindWithout = []string{"dimensions", "classes", "target_bp", "adaptive", "escrow"}
)

// absent refuses fields that are set; why says beside what.
func (r *resolver) absent(l *quorleasev1.Limit, why string, fields ...string) {
	set := map[string]bool{
		"dimensions": len(l.GetDimensions()) > 0, "concurrency": l.Concurrency != nil, "quota": l.GetQuota() != nil,
		"classes": len(l.GetClasses()) > 0, "target_bp": l.TargetBp != nil && l.GetTargetBp() != bucket.Whole,
		"adaptive": l.GetAdaptive() != nil, "ramp": l.GetRamp() != nil, "escrow": l.GetEscrow() != nil,
		"queue": l.GetQueue() != nil, "overrides": len(l.GetOverrides()) > 0,
	}
	for _, field := range fields {
		if set[field] {
			r.fail(field, "must be absent where %s", why)
		}
	}
}

// slots is what a concurrency limit counts: nothing is refilled, what comes back
// is given back.
func (r *resolver) slots(l *quorleasev1.Limit, out *logv1.Limit) {
	if l.GetQuota() != nil {
		r.fail("quota", "must be absent where concurrency counts slots")
	}
	most := r.within("concurrency", l.GetConcurrency(), 0, bucket.MaxTokens)
	out.Dimensions = []*logv1.Dimension{slots(most)}
}

func slots(most int64) *logv1.Dimension {
	return &logv1.Dimension{Name: slotsName, Interval: uncounted, Burst: most}
}

// quota is what a calendar window may be used for. An excess may be as large as
// the amount, and everything can come back within the window.
func (r *resolver) quota(l *quorleasev1.Limit, out *logv1.Limit) {
	q := l.GetQuota()
	out.Calendar = &logv1.Calendar{Period: logv1.Calendar_Period(q.GetPeriod()), Timezone: q.GetTimezone()}
	if periods.Name(q.GetPeriod()) == "" {
		r.fail("quota.period", "missing: hour, day or month")
	}
	if out.GetCalendar().GetTimezone() == "" {
		out.Calendar.Timezone = "UTC"
	}
	r.problem("quota.timezone", zoneProblem(out.GetCalendar().GetTimezone()))
	switch n := len(q.GetAmounts()); {
	case n == 0:
		r.fail("quota.amounts", "missing: a number of tokens for each dimension")
	case n > DimensionsMax:
		r.fail("quota.amounts", "%d dimensions, more than %d", n, DimensionsMax)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(q.GetAmounts())) {
		at := "quota.amounts." + strict.Shortened(name)
		r.problem(at, DimensionProblem(name))
		out.Dimensions = append(out.Dimensions, ofWindow(name, r.within(at, q.GetAmounts()[name], 0, bucket.MaxTokens)))
	}
	if n := len(q.GetWarnBp()); n > warnMax {
		r.fail("quota.warn_bp", "%d parts, more than %d", n, warnMax)
		return
	}
	last := int64(0)
	for i, part := range q.GetWarnBp() {
		at := fmt.Sprintf("quota.warn_bp[%d]", i)
		part = r.share(at, part, 1, bucket.Whole-1)
		if part <= last {
			r.fail(at, "%s: must be more than the one before it", written.FormatShare(part))
		}
		last = part
		out.Warn = append(out.Warn, part)
	}
}

func ofWindow(name string, amount int64) *logv1.Dimension {
	return &logv1.Dimension{Name: name, Interval: uncounted, Burst: amount, MaxDebt: amount, MaxOpen: amount}
}

// zoneProblem says why a time zone can't be used; the leader will look it up.
func zoneProblem(name string) string {
	// "Local" would be another zone on another node.
	if _, err := time.LoadLocation(name); err != nil || name == "Local" || len(name) > ClientMax {
		return Quote(name) + ": unknown time zone; want a name of the IANA database, like Europe/Berlin"
	}
	return ""
}

func (r *resolver) adaptive(l *quorleasev1.Limit, out *logv1.Limit) {
	a := l.GetAdaptive()
	if a == nil {
		return
	}
	part := func(field string, given *int64, absent, most int64) int64 {
		if given == nil {
			return absent
		}
		return r.share("adaptive."+field, *given, 1, most)
	}
	out.Adaptive = &logv1.Adaptive{
		Decrease: part("decrease_bp", a.DecreaseBp, 5_000, bucket.Whole-1),
		Step:     part("step_bp", a.StepBp, 500, bucket.Whole),
		Interval: int64(r.duration("adaptive.interval", a.GetInterval(), 10*time.Second, 100*time.Millisecond, time.Hour)),
		Floor:    part("floor_bp", a.FloorBp, 1_000, bucket.Whole),
	}
}

func (r *resolver) queue(l *quorleasev1.Limit, out *logv1.Limit) {
	q := l.GetQueue()
	out.Queue = &logv1.Queue{
		Max:       defaultQueueMax,
		MaxTokens: r.within("queue.max_tokens", q.GetMaxTokens(), 0, bucket.MaxTokens),
		MaxWait:   int64(r.duration("queue.max_wait", q.GetMaxWait(), defaultQueueWait, 0, queueWaitMax)),
	}
	if q != nil && q.Max != nil {
		out.Queue.Max = r.within("queue.max", q.GetMax(), 0, 1_000_000)
	}
	if n := len(q.GetWeights()); n > weightsMax {
		r.fail("queue.weights", "%d clients, more than %d", n, weightsMax)
		return
	}
	for _, client := range slices.Sorted(maps.Keys(q.GetWeights())) {
		at := "queue.weights." + strict.Shortened(client)
		if client == "" {
			r.fail("queue.weights", "a client without a name")
		}
		r.problem(at, ClientProblem(client))
		out.Queue.Weights = append(out.Queue.Weights, &logv1.Weight{
			Client: client, Weight: r.within(at, q.GetWeights()[client], 1, weightMax),
		})
	}
}

// sourceMax bounds where the numbers come from, in bytes.
const sourceMax = 512

func (r *resolver) source(l *quorleasev1.Limit, out *logv1.Limit) {
	s := l.GetSource()
	if s == nil {
		return
	}
	r.problem("source.url", textProblem(s.GetUrl(), sourceMax))
	if at := s.GetVerifiedAt(); at != "" {
		if _, err := time.Parse(time.DateOnly, at); err != nil {
			r.fail("source.verified_at", "%s: want a date like 2026-10-22", Quote(at))
		}
	}
	out.Source = &logv1.Source{Url: s.GetUrl(), VerifiedAt: s.GetVerifiedAt()}
}
