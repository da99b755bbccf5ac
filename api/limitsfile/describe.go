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
		Lease:    durationpb.New(time.Duration(l.GetLease())),
		TargetBp: proto.Int64(l.GetTarget()), MaxKeys: proto.Int64(l.GetMaxKeys()),
		OnQuorumLoss: Mode(l),
	}
	if l.FallbackShare != nil {
		out.FallbackShareBp = proto.Int64(l.GetFallbackShare())
	}
	if l.GetKeyed() {
		out.Per = []string{perKey}
	}
	for _, d := range l.GetDimensions() {
		out.Dimensions = append(out.Dimensions, &quorleasev1.Dimension{
			Name: d.GetName(),
			Rate: &quorleasev1.Rate{
				Amount: d.GetAmount(), Interval: durationpb.New(time.Duration(d.GetInterval())),
			},
			Burst:   proto.Int64(d.GetBurst()),
			MaxDebt: proto.Int64(d.GetMaxDebt()),
			MaxOpen: proto.Int64(d.GetMaxOpen()),
		})
	}
	for _, c := range l.GetClasses() {
		out.Classes = append(out.Classes, &quorleasev1.Class{
			Name: c.GetName(), ShareBp: c.GetShare(), BurstBp: proto.Int64(c.GetBurst()),
		})
	}
	return out
}

// DescribeBudget is the inverse of ResolveBudget.
func DescribeBudget(b *logv1.RetryBudget) *quorleasev1.RetryBudget {
	if b == nil {
		return nil
	}
	return &quorleasev1.RetryBudget{
		Name: b.GetName(), Client: b.GetClient(),
		MaxRetries: proto.Uint32(b.GetMaxRetries()), MaxFractionBp: proto.Int64(b.GetMaxFraction()),
		Window:      durationpb.New(time.Duration(b.GetWindow())),
		MinRequests: proto.Int64(b.GetMinRequests()),
		RetryAfter:  durationpb.New(time.Duration(b.GetRetryAfter())),
	}
}
