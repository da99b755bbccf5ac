// Package rules has the limits of every simulated world, and what is asked of them.
package rules

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// The limits of every world.
const (
	Rate  = "rate"
	Pair  = "pair"
	Share = "share"
	Loose = "loose"
	Mixed = "mixed"
	Rare  = "rare"
	Free  = "free"
	Lane  = "lane"
	Gate  = "gate"
	Soft  = "soft"
	Adapt = "adapt"
	Pool  = "pool"
	Crowd = "crowd"
)

// Clients share what is shared in equal parts.
const (
	Clients  = 4
	SharePPM = 1_000_000 / Clients
)

// New are the limits.
func New() []*logv1.Limit {
	second := int64(time.Second)
	limit := func(name string, lease int64, dimensions ...*logv1.Dimension) *logv1.Limit {
		return &logv1.Limit{Name: name, Dimensions: dimensions, Target: 10_000, Lease: lease, MaxKeys: 100}
	}
	requests := func(amount, burst, debt, open int64) *logv1.Dimension {
		return &logv1.Dimension{
			Name: "requests", Amount: amount, Interval: second, Burst: burst, MaxDebt: debt, MaxOpen: open,
		}
	}
	pair := limit(Pair, 3*second, requests(4, 8, 0, 8), &logv1.Dimension{
		Name: "tokens", Amount: 60, Interval: second, Burst: 180, MaxOpen: 120,
	})
	pair.Keyed = true
	pair.Classes = []*logv1.Class{{Name: "live", Share: 5_000, Burst: 2_500}, {Name: "batch", Share: 2_500}}
	share := limit(Share, second, requests(5, 60, 60, 5))
	share.OnQuorumLoss = logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE
	fallback := int64(bucket.Whole / Clients)
	share.FallbackShare = &fallback
	// All of the rate is guaranteed to somebody, so that what spot owes is paid only
	// out of what the others can't hold (T18).
	mixed := limit(Mixed, 2*second, requests(6, 9, 12, 1000))
	mixed.Classes = []*logv1.Class{
		{Name: "live", Share: 5_000, Burst: 5_000}, {Name: "batch", Share: 5_000, Burst: 2_500}, {Name: "spot"},
	}
	// Seldom asked for and changed often: its buckets have several changes to pass.
	rare := limit(Rare, 2*second, requests(2, 10, 0, 10))
	rare.Keyed = true
	// Nothing but a retry budget bounds what the storm gets of it.
	free := &logv1.Limit{Name: Free, Unlimited: true, Target: 10_000, Lease: second, MaxKeys: 1}
	// Where acquires wait: what batch asks for is more than its part holds (T48).
	lane := limit(Lane, 2*second, requests(6, 10, 0, 1000))
	lane.Classes = []*logv1.Class{{Name: "live", Share: 3_000, Burst: 3_000}, {Name: "batch", Share: 3_000, Burst: 3_000}}
	lane.Queue = &logv1.Queue{Max: 1000, MaxWait: int64(time.Minute)}
	// Three slots, for which some wait.
	gate := limit(Gate, 2*second, &logv1.Dimension{Name: "slots", Interval: second, Burst: 3})
	gate.Kind = logv1.Kind_KIND_CONCURRENCY
	gate.Queue = &logv1.Queue{Max: 1000, MaxWait: int64(time.Minute)}
	// What providers speak of: one reopens over a ramp, the other adapts.
	soft := limit(Soft, 2*second, requests(8, 10, 0, 10))
	soft.Keyed, soft.Ramp = true, 2*second
	adapt := limit(Adapt, 2*second, requests(8, 10, 6, 10))
	adapt.Adaptive = &logv1.Adaptive{Decrease: 5_000, Step: 2_000, Interval: second / 2, Floor: 500}
	// The first is the one that T40 changes.
	return []*logv1.Limit{
		limit(Rate, 2*second, requests(15, 20, 0, 20)), pair, share,
		limit(Loose, 2*second, requests(8, 10, 20, 10)), mixed, rare, free, lane,
		gate, soft, adapt,
	}
}

// NewPool is a limit that is large enough for nodes to hold some of it.
func NewPool(keyed bool) *logv1.Limit {
	limit := &logv1.Limit{
		Name: Pool, Keyed: keyed, Target: 10_000, Lease: int64(time.Second), Escrow: int64(4 * time.Second), MaxKeys: 100,
		Classes: []*logv1.Class{{Name: "live", Share: 3_000, Burst: 3_000}, {Name: "batch", Share: 2_000, Burst: 2_000}},
	}
	for _, name := range []string{"requests", "tokens"} {
		limit.Dimensions = append(limit.Dimensions, &logv1.Dimension{
			Name: name, Amount: 120, Interval: int64(time.Second), Burst: 800, MaxOpen: 200,
		})
	}
	return limit
}

// NewCrowd is a limit of which clients are promised shares.
func NewCrowd() *logv1.Limit {
	return &logv1.Limit{
		Name: Crowd, Target: 10_000, Lease: int64(time.Second), MaxKeys: 1, Exact: true,
		OnQuorumLoss: logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE,
		Dimensions: []*logv1.Dimension{{
			Name: "requests", Amount: 20, Interval: int64(time.Second), Burst: 100, MaxOpen: 10, MaxDebt: 100,
		}},
	}
}

// Charges is one charge.
func Charges(limit, key, dimension string, amount int64) []*logv1.Charge {
	return []*logv1.Charge{{Limit: limit, Key: key, Dimension: dimension, Amount: amount}}
}

// Acquire is an acquire as an operation.
func Acquire(op *logv1.Acquire) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}}
}

// Signal is something that a provider may say of a key.
func Signal(s *stage.Stage, limit, key, dimension string) *logv1.Signal {
	signal := &logv1.Signal{Limit: limit, Key: key, Kind: logv1.Signal_Kind(1 + s.Rand.IntN(5))}
	if signal.GetKind() != logv1.Signal_KIND_OBSERVED && s.Chance(2) {
		signal.Wait = int64(s.Between(0, 2*time.Second))
	}
	if signal.GetKind() == logv1.Signal_KIND_OBSERVED || s.Chance(3) {
		signal.Observed = []*logv1.Observed{{Dimension: dimension, Remaining: s.Amount(0, 10)}}
	}
	return signal
}

// Own is what a class can ever have of a burst: all but the parts of the others.
func Own(limit *logv1.Limit, burst int64, class string) int64 {
	most := burst
	for _, other := range limit.GetClasses() {
		if other.GetName() != class {
			most -= burst * other.GetBurst() / bucket.Whole
		}
	}
	return most
}

// The retry budget. Its window is short, so that a run sees many of them.
const (
	BudgetWindow   = 3 * time.Second
	BudgetRequests = 10
)

// Budget is the retry budget of every world.
func Budget() *logv1.RetryBudget {
	return &logv1.RetryBudget{
		Name: "all", Client: "*", MaxRetries: 3, MaxFraction: 2_000, Window: int64(BudgetWindow),
		MinRequests: BudgetRequests, RetryAfter: int64(time.Second),
	}
}
