package convert

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// ppmPerHundredth is parts per million in a hundredth of a percent.
const ppmPerHundredth = 100

// Fallbacks are the rules of every limit that op charges, each once, and the
// retry budget of its client, as the machine knows them.
func Fallbacks(m *fsm.Machine, op *logv1.Acquire) *quorleasev1.Fallbacks {
	out := &quorleasev1.Fallbacks{Revision: m.Revision()}
	for i, c := range op.GetCharges() {
		if chargedBefore(op.GetCharges()[:i], c.GetLimit()) {
			continue
		}
		if limit := m.Limit(c.GetLimit()); limit != nil {
			out.Limits = append(out.Limits, fallback(limit))
		}
	}
	// Work for nobody is in no budget, also not in that of everybody.
	if op.GetClient() != "" {
		out.Retries = retryRule(m.BudgetFor(op.GetClient()))
	}
	return out
}

func chargedBefore(charges []*logv1.Charge, limit string) bool {
	for _, c := range charges {
		if c.GetLimit() == limit {
			return true
		}
	}
	return false
}

func fallback(limit *logv1.Limit) *quorleasev1.Fallback {
	out := &quorleasev1.Fallback{
		Limit: limit.GetName(), Mode: limitsfile.Mode(limit), Unlimited: limit.GetUnlimited(),
		Lease: nanoseconds(limit.GetLease()),
	}
	if limit.GetMode() != logv1.Mode_MODE_ENFORCE {
		// A client refuses nothing that its authority would not.
		out.Mode = quorleasev1.FallbackMode_OPEN_ON_LOSS
	}
	if limit.FallbackShare != nil {
		out.SharePpm = proto.Int64(limit.GetFallbackShare() * ppmPerHundredth)
	}
	for _, d := range limit.GetDimensions() {
		amount, interval := lineage.Rate(d, limit.GetTarget())
		out.Dimensions = append(out.Dimensions, &quorleasev1.FallbackDimension{
			Name: d.GetName(), Amount: amount, Interval: durationpb.New(interval), Burst: d.GetBurst(),
		})
	}
	return out
}

// retryRule is what a client may refuse by itself: nothing that its authority
// would not.
func retryRule(b *logv1.RetryBudget) *quorleasev1.RetryRule {
	if b == nil || b.GetMode() != logv1.Mode_MODE_ENFORCE {
		return nil
	}
	out := &quorleasev1.RetryRule{
		MaxRetries: b.GetMaxRetries(), MaxFractionBp: b.GetMaxFraction(), MinRequests: b.GetMinRequests(),
		Window: nanoseconds(b.GetWindow()), RetryAfter: nanoseconds(b.GetRetryAfter()),
	}
	if b.GetMinRetries() > 0 {
		out.MinRetries, out.MinRetriesInterval = b.GetMinRetries(), nanoseconds(b.GetMinRetriesInterval())
	}
	return out
}
