package feedback

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/pace"
	"github.com/quorlease/quorlease/fsm/record"
)

func drawLimit(t *rapid.T, kind logv1.Kind) *logv1.Limit {
	limit := &logv1.Limit{Kind: kind, Ramp: rapid.Int64Range(0, int64(time.Hour)).Draw(t, "ramp")}
	if rapid.Bool().Draw(t, "adapts") {
		limit.Adaptive = &logv1.Adaptive{
			Decrease: rapid.Int64Range(1, 9_999).Draw(t, "decrease"), Step: rapid.Int64Range(1, 10_000).Draw(t, "step"),
			Interval: rapid.Int64Range(1, int64(time.Hour)).Draw(t, "interval"),
			Floor:    rapid.Int64Range(1, 10_000).Draw(t, "floor"),
		}
	}
	return limit
}

// TestASignalNeverOpensOrHurries: whatever was said before and however the limit has
// changed since, a signal never ends a pause or a block sooner, never hands out more,
// and what it makes is a pace that can be kept.
func TestASignalNeverOpensOrHurries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := bucket.Instant(time.Second)
		kind := logv1.Kind(rapid.IntRange(0, 2).Draw(t, "kind"))
		c := record.Control{Pace: pace.Pace{Start: pace.Whole}}
		for range rapid.IntRange(1, 12).Draw(t, "signals") {
			now += bucket.Instant(rapid.OneOf(
				rapid.Int64Range(0, int64(2*time.Second)), rapid.Int64Range(0, int64(time.Hour)),
			).Draw(t, "later"))
			s := &logv1.Signal{
				Kind: logv1.Signal_Kind(rapid.IntRange(1, 5).Draw(t, "said")),
				Wait: rapid.SampledFrom([]int64{0, 0, int64(time.Second), int64(time.Minute)}).Draw(t, "wait"),
			}
			next, empty := decide(drawLimit(t, kind), c, s, now)
			if _, err := pace.New(next.Pace); err != nil {
				t.Fatalf("%v of %+v makes %+v: %v", s, c, next, err)
			}
			until := now + bucket.Instant(s.GetWait())
			pauses := s.GetKind() <= logv1.Signal_KIND_OVERLOADED && s.GetWait() > 0
			switch {
			case next.Pace.Opens < c.Pace.Opens || c.Blocked && !next.Blocked:
				t.Fatalf("%v opens %+v: %+v", s, c, next)
			case pauses && next.Pace.Opens < until:
				t.Fatalf("%v of %+v: opens at %d, before %d", s, c, next.Pace.Opens, until)
			case next.Pace.At(now) > c.Pace.At(now):
				t.Fatalf("%v hurries %+v: %+v", s, c, next)
			case c.Paused(now) && until <= c.Pace.Opens && next.Pace != c.Pace:
				t.Fatalf("%v is over before %+v opens, and makes %+v", s, c, next)
			case empty && s.GetKind() != logv1.Signal_KIND_THROTTLED:
				t.Fatalf("%v empties", s)
			}
			c = next
			// The same once more changes nothing.
			if again, empty := decide(drawLimit(t, kind), c, s, now); again != c || empty && again == c && pauses {
				t.Fatalf("%v said twice makes %+v of %+v", s, again, c)
			}
		}
	})
}
