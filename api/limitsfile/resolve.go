package limitsfile

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile/written"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/window"
)

// What an absent field means.
const (
	defaultSize        = 60 * time.Second // of the rate: burst, max_debt, max_open
	defaultLease       = 5 * time.Second
	defaultMaxKeys     = 100_000
	defaultMaxRetries  = 3
	defaultMaxFraction = 2_000 // 20 %
	defaultWindow      = 5 * time.Minute
	defaultMinRequests = 50
	defaultRetryAfter  = 60 * time.Second
	defaultRamp        = 60 * time.Second
	defaultEscrow      = 3 * time.Second
	// Slots are held while work is in flight, which takes longer than spending
	// tokens does.
	defaultSlotsLease   = 60 * time.Second
	defaultWarnFraction = 1_000 // 10 %
	defaultWarnFor      = 2 * time.Minute
	defaultQueueMax     = 10_000
	defaultQueueWait    = 60 * time.Second
)

// Bounds of what a file can say.
const (
	// DimensionsMax is as many as one acquire can charge.
	DimensionsMax = 16
	leaseMin      = time.Millisecond
	leaseMax      = 24 * time.Hour
	retriesMax    = 1_000_000
	windowMax     = 24 * time.Hour
	pauseMax      = 24 * time.Hour
	rampMax       = time.Hour
	escrowMin     = 100 * time.Millisecond
	escrowMax     = time.Hour
	queueWaitMax  = time.Hour
	warnForMax    = 24 * time.Hour
)

// windowUnit divides every window: a slice is a 300th of it, and a whole number
// of milliseconds.
const windowUnit = window.Slices * 10 * time.Millisecond

// Resolve fills in every default of l and checks it completely, also that its
// buckets can be counted exactly. The error is FieldErrors, with paths inside
// the limit as the public protocol calls them.
func Resolve(l *quorleasev1.Limit) (*logv1.Limit, error) {
	r := &resolver{}
	out := r.limit(l)
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return out, nil
}

// ResolveBudget is Resolve for a retry budget.
func ResolveBudget(b *quorleasev1.RetryBudget) (*logv1.RetryBudget, error) {
	r := &resolver{}
	out := r.budget(b)
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return out, nil
}

// ResolveAll resolves everything that a request names, and refuses a name that
// comes twice. Deleting is not part of it.
func ResolveAll(req *quorleasev1.LimitsApplyRequest) (*logv1.ApplyLimits, error) {
	var errs FieldErrors
	out := &logv1.ApplyLimits{Prune: req.GetPrune(), ExpectedRevision: req.ExpectedRevision}
	limits, budgets, clients := map[string]int{}, map[string]int{}, map[string]int{}
	for i, l := range req.GetLimits() {
		r := &resolver{}
		out.Limits = append(out.Limits, r.limit(l))
		r.unique(limits, "name", l.GetName(), "limits[%d]", i)
		errs = append(errs, r.errs.under(fmt.Sprintf("limits[%d]", i))...)
	}
	for i, b := range req.GetRetryBudgets() {
		r := &resolver{}
		out.RetryBudgets = append(out.RetryBudgets, r.budget(b))
		r.unique(budgets, "name", b.GetName(), "retry_budgets[%d]", i)
		r.unique(clients, "client", b.GetClient(), "retry_budgets[%d]", i)
		errs = append(errs, r.errs.under(fmt.Sprintf("retry_budgets[%d]", i))...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// resolver collects what is wrong with one limit or budget.
type resolver struct{ errs FieldErrors }

func (r *resolver) fail(field, format string, args ...any) {
	r.errs = append(r.errs, &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// problem is fail for a check that returns "" where all is well.
func (r *resolver) problem(field, problem string) {
	if problem != "" {
		r.fail(field, "%s", problem)
	}
}

// unique refuses a value that an earlier item has; place is that item's path.
func (r *resolver) unique(seen map[string]int, field, value, place string, i int) {
	if first, twice := seen[value]; twice && value != "" {
		r.fail(field, "%s is used twice, first by "+place, Quote(value), first)
		return
	}
	seen[value] = i
}

// within returns value, or least where it is out of range.
func (r *resolver) within(field string, value, least, most int64) int64 {
	if value < least || value > most {
		r.fail(field, "%d is out of range %d..%d", value, least, most)
		return least
	}
	return value
}

// share is within for hundredths of a percent, which it says as people do.
func (r *resolver) share(field string, value, least, most int64) int64 {
	if value < least || value > most {
		r.fail(field, "%s is out of range %s..%s",
			written.FormatShare(value), written.FormatShare(least), written.FormatShare(most))
		return least
	}
	return value
}

// duration is the value of d, or what absent means. Its bounds are inclusive.
func (r *resolver) duration(field string, d *durationpb.Duration, absent, least, most time.Duration) time.Duration {
	if d == nil {
		return absent
	}
	value := d.AsDuration()
	if err := d.CheckValid(); err != nil || value < least || value > most {
		r.fail(field, "%v is out of range %v..%v", value, written.FormatDuration(least), written.FormatDuration(most))
		return absent
	}
	return value
}

func (r *resolver) limit(l *quorleasev1.Limit) *logv1.Limit {
	r.problem("name", NameProblem(l.GetName()))
	out := &logv1.Limit{
		Name: l.GetName(), Unlimited: l.GetUnlimited(), Exact: l.GetExact(), Target: bucket.Whole,
		Kind: kindOf(l), Mode: r.enforcement(l.GetMode()), MaxKeys: defaultMaxKeys,
		MaxKeysPerClient: r.within("max_keys_per_client", l.GetMaxKeysPerClient(), 0, bucket.MaxTokens),
	}
	lease := defaultLease
	if out.GetKind() == logv1.Kind_KIND_CONCURRENCY {
		lease = defaultSlotsLease
	}
	out.Lease = int64(r.duration("lease", l.GetLease(), lease, leaseMin, leaseMax))
	if l.MaxKeys != nil {
		out.MaxKeys = r.within("max_keys", l.GetMaxKeys(), 1, bucket.MaxTokens)
	}
	r.attributes(l, out)
	r.source(l, out)
	r.fallback(l, out)
	if l.GetUnlimited() {
		r.absent(l, "unlimited is true", unlimitedWithout...)
		return out
	}
	r.queue(l, out)
	out.Ramp = int64(r.duration("ramp", l.GetRamp(), defaultRamp, 0, rampMax))
	switch out.GetKind() {
	case logv1.Kind_KIND_CONCURRENCY:
		r.absent(l, "concurrency counts slots", otherKindWithout...)
		r.slots(l, out)
	case logv1.Kind_KIND_QUOTA:
		r.absent(l, "quota counts a calendar window", otherKindWithout...)
		r.quota(l, out)
	case logv1.Kind_KIND_RATE:
		if l.TargetBp != nil {
			out.Target = r.share("target_bp", l.GetTargetBp(), 1, bucket.Whole)
		}
		out.Escrow = int64(r.duration("escrow", l.GetEscrow(), defaultEscrow, escrowMin, escrowMax))
		r.adaptive(l, out)
		r.classes(l, out)
		r.dimensions(l, out)
	}
	r.overrides(l, out)
	return out
}

func (r *resolver) classes(l *quorleasev1.Limit, out *logv1.Limit) {
	if n := len(l.GetClasses()); n > bucket.MaxClasses {
		r.fail("classes", "%d classes, more than %d", n, bucket.MaxClasses)
		return
	}
	seen, sum := map[string]int{}, int64(0)
	for i, c := range l.GetClasses() {
		at := fmt.Sprintf("classes[%d].", i)
		r.problem(at+"name", ClassProblem(c.GetName()))
		r.unique(seen, at+"name", c.GetName(), "classes[%d]", i)
		class := &logv1.Class{Name: c.GetName(), Share: r.share(at+"share_bp", c.GetShareBp(), 0, bucket.Whole)}
		if sum += class.Share; sum > bucket.Whole {
			r.fail(at+"share_bp", "%s: with those before it %s, which is more than 100%%",
				written.FormatShare(class.Share), written.FormatShare(sum))
		}
		class.Burst = class.Share
		if c.BurstBp != nil {
			class.Burst = r.share(at+"burst_bp", c.GetBurstBp(), 0, bucket.Whole)
		}
		out.Classes = append(out.Classes, class)
	}
}

func (r *resolver) dimensions(l *quorleasev1.Limit, out *logv1.Limit) {
	switch n := len(l.GetDimensions()); {
	case n == 0:
		r.fail("dimensions", "missing: name a rate for each dimension, a concurrency or a quota, or set unlimited: true")
	case n > DimensionsMax:
		r.fail("dimensions", "%d dimensions, more than %d", n, DimensionsMax)
		return
	}
	seen := map[string]int{}
	for i, d := range l.GetDimensions() {
		at := fmt.Sprintf("dimensions[%d].", i)
		r.problem(at+"name", DimensionProblem(d.GetName()))
		r.unique(seen, at+"name", d.GetName(), "dimensions[%d]", i)
		before := len(r.errs)
		dimension := r.dimension(at, d, out.GetTarget(), nil)
		out.Dimensions = append(out.Dimensions, dimension)
		if len(r.errs) == before {
			r.shape(at, out, dimension)
		}
	}
}

// dimension is complete; like is the one of the limit where d is that of an
// override, which need not say everything.
func (r *resolver) dimension(
	at string, d *quorleasev1.Dimension, target int64, like *logv1.Dimension,
) *logv1.Dimension {
	out := &logv1.Dimension{Name: d.GetName()}
	switch {
	case d.GetRate() != nil:
		out.Amount, out.Interval = r.rate(at+"rate", d.GetRate())
	case like != nil:
		out.Amount, out.Interval = like.GetAmount(), like.GetInterval()
	default:
		r.fail(at+"rate", "missing")
		return out
	}
	if out.GetInterval() == 0 {
		return out
	}
	whole := written.Rate{Amount: out.GetAmount(), Interval: time.Duration(out.GetInterval()), Target: target}
	least := int64(0)
	if out.GetAmount() > 0 {
		least = 1
	}
	out.Burst = r.size(at+"burst", d.Burst, least, whole.BurstIn(defaultSize))
	out.MaxDebt = r.size(at+"max_debt", d.MaxDebt, 0, whole.TokensIn(defaultSize))
	out.MaxOpen = r.size(at+"max_open", d.MaxOpen, 0, whole.TokensIn(defaultSize))
	return out
}

// rate is tokens an interval; the interval is 0 where it can't be used.
func (r *resolver) rate(field string, given *quorleasev1.Rate) (amount, interval int64) {
	amount = r.within(field+".amount", given.GetAmount(), 0, bucket.MaxTokens)
	long := r.duration(field+".interval", given.GetInterval(), 0, time.Second, written.IntervalMax)
	switch {
	case given.GetInterval() == nil:
		r.fail(field+".interval", "missing")
	case long%time.Second != 0:
		r.fail(field+".interval", "%v is not a whole number of seconds", long)
	}
	return amount, int64(long)
}

func (r *resolver) size(field string, given *int64, least, absent int64) int64 {
	if given != nil {
		return r.within(field, *given, least, bucket.MaxTokens)
	}
	if absent > bucket.MaxTokens {
		r.fail(field, "missing, and %v of the rate is more than %d: give a number of tokens",
			written.FormatDuration(defaultSize), int64(bucket.MaxTokens))
		return least
	}
	return absent
}
