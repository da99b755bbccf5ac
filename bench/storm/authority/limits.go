package authority

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/queue"
)

// whole is all of something in hundredths of a percent.
const whole = 10_000

// Dimension is one dimension of a limit: so many tokens an interval, with a
// burst. A burst may be owed, and what a minute brings may come back.
func Dimension(name string, amount int64, interval time.Duration, burst int64) *logv1.Dimension {
	return &logv1.Dimension{
		Name: name, Amount: amount, Interval: int64(interval), Burst: burst, MaxDebt: burst,
		MaxOpen: max(burst, amount*int64(time.Minute)/int64(interval)),
	}
}

// Limit is a limit at which up to 10,000 may wait for an hour, with leases of a
// minute.
func Limit(name string, dimensions ...*logv1.Dimension) *logv1.Limit {
	return &logv1.Limit{
		Name: name, Dimensions: dimensions, Target: whole, Lease: int64(time.Minute), MaxKeys: 1000,
		Queue: &logv1.Queue{Max: 10_000, MaxWait: int64(time.Hour)},
	}
}

// Charge is one charge.
func Charge(limit, key, dimension string, amount int64) *logv1.Charge {
	return &logv1.Charge{Limit: limit, Key: key, Dimension: dimension, Amount: amount}
}

// Budget is the retry budget of the incident report, for every client: three
// retries, a fifth of what the client sends in five minutes, once that is more
// than fifty.
func Budget() *logv1.RetryBudget {
	return &logv1.RetryBudget{
		Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, Window: int64(5 * time.Minute),
		MinRequests: 50, RetryAfter: int64(time.Minute), WarnFraction: 1000, WarnFor: int64(2 * time.Minute),
	}
}

// termsOf is what the queue has to know of a limit.
func termsOf(l *logv1.Limit) *queue.Terms {
	t := &queue.Terms{
		Max: l.GetQueue().GetMax(), MaxTokens: l.GetQueue().GetMaxTokens(),
		MaxWait: time.Duration(l.GetQueue().GetMaxWait()), Weights: make(map[string]int64),
	}
	for _, w := range l.GetQueue().GetWeights() {
		t.Weights[w.GetClient()] = w.GetWeight()
	}
	for _, c := range l.GetClasses() {
		t.Classes = append(t.Classes, c.GetName())
	}
	for _, d := range l.GetDimensions() {
		one := queue.Dimension{
			Name: d.GetName(), Tokens: d.GetAmount() * l.GetTarget() / whole, Per: time.Duration(d.GetInterval()),
		}
		if l.GetKind() == logv1.Kind_KIND_CONCURRENCY {
			one.Tokens, one.Per = d.GetBurst(), time.Duration(l.GetLease())
		}
		for _, c := range l.GetClasses() {
			one.Parts = append(one.Parts, queue.Part{Share: c.GetShare(), SubBurst: d.GetBurst() * c.GetBurst() / whole})
		}
		t.Dimensions = append(t.Dimensions, one)
	}
	return t
}
