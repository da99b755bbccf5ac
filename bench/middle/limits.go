package middle

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// The limits, each with a key a round. exactLimit never refills, so that its level
// counts every token.
const (
	exactLimit  = "exact"
	slotLimit   = "slots"
	queueLimit  = "queue"
	pausedLimit = "provider"

	exactBurst = 10_000_000
	slotCount  = 5
)

// configure applies limits and the retry budget.
func configure(ctx context.Context, c *crowd) error {
	rate := func(amount, burst int64) []*quorleasev1.Dimension {
		return []*quorleasev1.Dimension{{
			Name: "requests", Burst: proto.Int64(burst), MaxOpen: proto.Int64(burst),
			Rate: &quorleasev1.Rate{Amount: amount, Interval: durationpb.New(time.Second)},
		}}
	}
	key := []string{"key"}
	_, err := c.limits(0).Apply(ctx, &quorleasev1.LimitsApplyRequest{
		Limits: []*quorleasev1.Limit{
			{Name: exactLimit, Per: key, Dimensions: rate(0, exactBurst), Lease: durationpb.New(time.Hour)},
			{Name: slotLimit, Per: key, Concurrency: proto.Int64(slotCount), Lease: durationpb.New(time.Hour)},
			{Name: queueLimit, Per: key, Dimensions: rate(50, 5)},
			{Name: pausedLimit, Per: key, Dimensions: rate(1000, 1000), Ramp: durationpb.New(time.Second)},
		},
		RetryBudgets: []*quorleasev1.RetryBudget{{Name: "storms", Client: stormClients + "*"}},
	})
	return err
}

func charge(limit, key, dimension string, amount int64) []*quorleasev1.Charge {
	return []*quorleasev1.Charge{{Limit: limit, Key: key, Dimension: dimension, Amount: amount}}
}

func granted(a *quorleasev1.AcquireResponse) bool {
	return a.GetDecision() == quorleasev1.Decision_GRANTED
}

func reason(a *quorleasev1.AcquireResponse) quorleasev1.Reason {
	if len(a.GetDenials()) == 0 {
		return quorleasev1.Reason_REASON_UNSPECIFIED
	}
	return a.GetDenials()[0].GetReason()
}
