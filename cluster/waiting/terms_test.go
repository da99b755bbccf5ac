package waiting

import (
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTermsOfALimit(t *testing.T) {
	t.Parallel()
	limit := &logv1.Limit{
		Name: "gpt", Target: 7500, Lease: int64(5 * time.Second), Keyed: true,
		Dimensions: []*logv1.Dimension{{Name: "tokens", Amount: 400, Interval: int64(time.Minute), Burst: 101}},
		Classes:    []*logv1.Class{{Name: "live", Share: 6000, Burst: 5000}, {Name: "batch"}},
		Queue: &logv1.Queue{
			Max: 10, MaxTokens: 20, MaxWait: int64(time.Minute), Weights: []*logv1.Weight{{Client: "big", Weight: 4}},
		},
		Overrides: []*logv1.Override{
			{Value: "big", Dimensions: []*logv1.Dimension{{Name: "tokens", Amount: 8, Interval: int64(time.Second), Burst: 8}}},
			{Value: "b", Prefix: true, Dimensions: []*logv1.Dimension{{Name: "tokens", Amount: 4, Interval: 1, Burst: 2}}},
		},
	}
	got := termsOf(limit)
	// Three quarters of 400 a minute; half of 101 in whole tokens.
	want := []queue.Dimension{{
		Name: "tokens", Tokens: 300, Per: time.Minute, Parts: []queue.Part{{Share: 6000, SubBurst: 50}, {}},
	}}
	if !reflect.DeepEqual(got.Dimensions, want) || !reflect.DeepEqual(got.ForKey("x"), want) {
		t.Errorf("got %+v, want %+v", got.Dimensions, want)
	}
	if got.Max != 10 || got.MaxTokens != 20 || got.MaxWait != time.Minute || got.Weights["big"] != 4 {
		t.Errorf("got %+v", got)
	}
	if big, prefix := got.ForKey("big")[0], got.ForKey("bigger")[0]; big.Parts[0].SubBurst != 4 || prefix.Tokens != 3 {
		t.Errorf("overrides: %+v and %+v", big, prefix)
	}
	for _, c := range []struct {
		class, want string
		ok          bool
	}{{"", "live", true}, {"batch", "batch", true}, {"none", "", false}} {
		if name, ok := classOf(got, c.class); name != c.want || ok != c.ok {
			t.Errorf("class %q is %q, %t", c.class, name, ok)
		}
	}
}

// Where a limit refuses nobody, nobody waits.
func TestNobodyWaitsWhereNothingIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []logv1.Mode{logv1.Mode_MODE_OFF, logv1.Mode_MODE_SHADOW, logv1.Mode_MODE_WARN} {
		if got := termsOf(&logv1.Limit{Mode: mode, Queue: &logv1.Queue{Max: 10}}); got.Max != 0 {
			t.Errorf("%v: %d may wait", mode, got.Max)
		}
	}
	slots := termsOf(&logv1.Limit{
		Kind: logv1.Kind_KIND_CONCURRENCY, Lease: int64(time.Minute),
		Dimensions: []*logv1.Dimension{{Name: "slots", Interval: 1, Burst: 4}},
	})
	if d := slots.Dimensions[0]; slots.Max != 0 || d.Tokens != 4 || d.Per != time.Minute {
		t.Errorf("slots without a queue: %+v", slots)
	}
}
