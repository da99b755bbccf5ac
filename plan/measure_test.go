package plan_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/plan"
)

// The margin that is suggested is what 99 of 100 settled tasks stay within.
func TestMeasure(t *testing.T) {
	t.Parallel()
	tasks := func(n int, used func(i int) int64) (list []plan.Settled) {
		for i := range n {
			list = append(list, plan.Settled{Charged: 1000, Used: used(i)})
		}
		return list
	}
	t.Run("S3-36", func(t *testing.T) {
		t.Parallel()
		// Two of 200 are far off, ten are by 8 %, half are too high.
		got, err := plan.Measure(tasks(200, func(i int) int64 {
			switch {
			case i < 2:
				return 3000
			case i < 12:
				return 1080
			case i < 100:
				return 1010
			}
			return 500
		}))
		want := plan.Errors{Tasks: 200, P50: 0, P90: 100, P99: 800, Most: 20_000}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v; errors (-want +got):\n%s", err, diff)
		}
	})
	for name, list := range map[string][]plan.Settled{
		"too few": tasks(99, func(int) int64 { return 1 }), "no charge": make([]plan.Settled, 100),
		"less than nothing": tasks(100, func(int) int64 { return -1 }),
	} {
		if _, err := plan.Measure(list); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	huge, err := plan.Measure(tasks(100, func(int) int64 { return math.MaxInt64 }))
	if err != nil || huge.Most < math.MaxInt64/1000 {
		t.Errorf("%v, %+v", err, huge)
	}
}

// As many tasks as is said stay within each error, and not as many within a
// hundredth of a percent less.
func TestMeasureCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []plan.Settled
		for range rapid.IntRange(plan.SettledMin, 300).Draw(t, "tasks") {
			list = append(list, plan.Settled{
				Charged: rapid.Int64Range(1, 5000).Draw(t, "charged"), Used: rapid.Int64Range(0, 9000).Draw(t, "used"),
			})
		}
		got, err := plan.Measure(list)
		if err != nil {
			t.Fatal(err)
		}
		within := func(bp int64) (n int) {
			for _, s := range list {
				allowed := big.NewRat(s.Charged*(10_000+bp), 10_000)
				if allowed.Cmp(big.NewRat(s.Used, 1)) >= 0 {
					n++
				}
			}
			return n
		}
		for percent, bp := range map[int]int64{50: got.P50, 90: got.P90, 99: got.P99, 100: got.Most} {
			if n := within(bp); 100*n < percent*len(list) {
				t.Fatalf("%d of %d within %d, want %d %%", n, len(list), bp, percent)
			}
			if n := within(bp - 1); bp > 0 && 100*n >= percent*len(list) {
				t.Fatalf("%d of %d are within less than %d", n, len(list), bp)
			}
		}
	})
}
