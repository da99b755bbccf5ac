package limitsfile

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Describe is the inverse of Resolve: the public form of a limit with everything
// filled in. It returns nil for nil.
func Describe(l *logv1.Limit) *quorleasev1.Limit {
	if l == nil {
		return nil
	}
	out := &quorleasev1.Limit{
		Name: l.GetName(), Unlimited: l.GetUnlimited(), Exact: l.GetExact(),
		Lease: durationpb.New(time.Duration(l.GetLease())), MaxKeys: proto.Int64(l.GetMaxKeys()),
		OnQuorumLoss: Mode(l), Mode: LimitMode(l.GetMode()), MaxKeysPerClient: l.GetMaxKeysPerClient(),
		ShareReserveBp: l.GetShareReserve(),
		Per:            l.GetPer(), Match: describeMatch(l.GetMatch()),
	}
	if l.FallbackShare != nil {
		out.FallbackShareBp = proto.Int64(l.GetFallbackShare())
	}
	if l.GetKeyed() && len(l.GetPer()) == 0 {
		out.Per = []string{perKey}
	}
	if s := l.GetSource(); s != nil {
		out.Source = &quorleasev1.Reference{Url: s.GetUrl(), VerifiedAt: s.GetVerifiedAt()}
	}
	if l.GetUnlimited() {
		return out
	}
	out.Ramp = durationpb.New(time.Duration(l.GetRamp()))
	out.Queue = describeQueue(l.GetQueue())
	switch l.GetKind() {
	case logv1.Kind_KIND_CONCURRENCY:
		out.Concurrency = proto.Int64(l.GetDimensions()[0].GetBurst())
	case logv1.Kind_KIND_QUOTA:
		out.Quota = describeQuota(l)
	case logv1.Kind_KIND_RATE:
		describeRate(l, out)
	}
	for _, o := range l.GetOverrides() {
		out.Overrides = append(out.Overrides, describeOverride(l, o))
	}
	return out
}

func describeRate(l *logv1.Limit, out *quorleasev1.Limit) {
	out.TargetBp = proto.Int64(l.GetTarget())
	// A limit that was logged before there was escrow says nothing of it.
	if l.GetEscrow() > 0 {
		out.Escrow = durationpb.New(time.Duration(l.GetEscrow()))
	}
	out.Dimensions = describeDimensions(l.GetDimensions())
	for _, c := range l.GetClasses() {
		out.Classes = append(out.Classes, &quorleasev1.Class{
			Name: c.GetName(), ShareBp: c.GetShare(), BurstBp: proto.Int64(c.GetBurst()),
		})
	}
	if a := l.GetAdaptive(); a != nil {
		out.Adaptive = &quorleasev1.Adaptive{
			DecreaseBp: proto.Int64(a.GetDecrease()), StepBp: proto.Int64(a.GetStep()),
			Interval: durationpb.New(time.Duration(a.GetInterval())), FloorBp: proto.Int64(a.GetFloor()),
		}
	}
}

func describeDimensions(list []*logv1.Dimension) []*quorleasev1.Dimension {
	var out []*quorleasev1.Dimension
	for _, d := range list {
		out = append(out, &quorleasev1.Dimension{
			Name: d.GetName(),
			Rate: &quorleasev1.Rate{
				Amount: d.GetAmount(), Interval: durationpb.New(time.Duration(d.GetInterval())),
			},
			Burst:   proto.Int64(d.GetBurst()),
			MaxDebt: proto.Int64(d.GetMaxDebt()),
			MaxOpen: proto.Int64(d.GetMaxOpen()),
		})
	}
	return out
}

func describeMatch(list []*logv1.Match) map[string]string {
	var out map[string]string
	for _, m := range list {
		if out == nil {
			out = map[string]string{}
		}
		out[m.GetAttribute()] = m.GetValue()
		if m.GetPrefix() {
			out[m.GetAttribute()] += "*"
		}
	}
	return out
}

// describeQueue is nil for a limit that was logged before there were queues.
func describeQueue(q *logv1.Queue) *quorleasev1.Queue {
	if q == nil {
		return nil
	}
	out := &quorleasev1.Queue{
		Max: proto.Int64(q.GetMax()), MaxTokens: q.GetMaxTokens(),
		MaxWait: durationpb.New(time.Duration(q.GetMaxWait())),
	}
	for _, w := range q.GetWeights() {
		if out.Weights == nil {
			out.Weights = map[string]int64{}
		}
		out.Weights[w.GetClient()] = w.GetWeight()
	}
	return out
}

func describeQuota(l *logv1.Limit) *quorleasev1.Quota {
	out := &quorleasev1.Quota{
		Period:   quorleasev1.Quota_Period(l.GetCalendar().GetPeriod()),
		Timezone: l.GetCalendar().GetTimezone(), Amounts: map[string]int64{}, WarnBp: l.GetWarn(),
	}
	for _, d := range l.GetDimensions() {
		out.Amounts[d.GetName()] = d.GetBurst()
	}
	return out
}

func describeOverride(l *logv1.Limit, o *logv1.Override) *quorleasev1.Override {
	out := &quorleasev1.Override{Key: o.GetValue()}
	if o.GetPrefix() {
		out.Key, out.Prefix = "", o.GetValue()
	}
	if l.GetKind() == logv1.Kind_KIND_RATE {
		out.Dimensions = describeDimensions(o.GetDimensions())
		return out
	}
	for _, d := range o.GetDimensions() {
		out.Dimensions = append(out.Dimensions, &quorleasev1.Dimension{
			Name: d.GetName(), Burst: proto.Int64(d.GetBurst()),
		})
	}
	return out
}

// DescribeBudget is the inverse of ResolveBudget.
func DescribeBudget(b *logv1.RetryBudget) *quorleasev1.RetryBudget {
	if b == nil {
		return nil
	}
	out := &quorleasev1.RetryBudget{
		Name: b.GetName(), Client: b.GetClient(),
		MaxRetries: proto.Uint32(b.GetMaxRetries()), MaxFractionBp: proto.Int64(b.GetMaxFraction()),
		Window:      durationpb.New(time.Duration(b.GetWindow())),
		MinRequests: proto.Int64(b.GetMinRequests()),
		RetryAfter:  durationpb.New(time.Duration(b.GetRetryAfter())),

		Scope: BudgetScope(b.GetScope()), Mode: LimitMode(b.GetMode()),
		WarnFractionBp: proto.Int64(b.GetWarnFraction()), WarnFor: durationpb.New(time.Duration(b.GetWarnFor())),
	}
	if b.GetMinRetries() > 0 {
		out.MinRetries = &quorleasev1.Rate{
			Amount: b.GetMinRetries(), Interval: durationpb.New(time.Duration(b.GetMinRetriesInterval())),
		}
	}
	return out
}
