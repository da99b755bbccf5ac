package bucket

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRecountKeepsWhatWasUsed compares the bucket of a quota, through changes of its
// amount, with numbers that have no bounds: what is left is the amount less what was
// used, and no way of changing it there and back hands anything out twice.
func TestRecountKeepsWhatWasUsed(t *testing.T) {
	quota := func(t rapid.TB, amount, maxDebt int64) *Shape {
		return mustShape(t, Spec{Interval: time.Second, Target: Whole, Burst: amount, MaxDebt: maxDebt})
	}
	t.Run("A12", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			amounts := rapid.SampledFrom([]int64{0, 1, 7, 100, 101, MaxTokens - 1, MaxTokens})
			amount := amounts.Draw(t, "amount")
			s := quota(t, amount, amounts.Draw(t, "max_debt"))
			b, used := s.Full(0), new(big.Int)
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				n := rapid.Int64Range(1, 2*amount+1).Draw(t, "n")
				switch rapid.IntRange(0, 2).Draw(t, "operation") {
				case 0:
					if _, ok := b.Take(s, 0, n); ok {
						used.Add(used, big.NewInt(n))
					}
				case 1:
					used.Add(used, big.NewInt(n-b.Excess(s, 0, n)))
				case 2:
					amount = amounts.Draw(t, "next")
					next := quota(t, amount, amounts.Draw(t, "next_debt"))
					b.Recount(s, next)
					s = next
				}
				want := new(big.Int).Sub(big.NewInt(amount), used)
				if !want.IsInt64() || b.Remaining(s) != want.Int64() {
					t.Fatalf("%d are left, want %v", b.Remaining(s), want)
				}
				if b.Level(s) > 0 && b.Debt(s, 0) > 0 || b.Level(s) > amount {
					t.Fatalf("level %d, debt %d of %d", b.Level(s), b.Debt(s, 0), amount)
				}
			}
		})
	})
	t.Run("a debt beyond all bounds", func(t *testing.T) {
		s := quota(t, MaxTokens, 0)
		b, err := FromState(s, State{Debts: []int64{math.MaxInt64}, Levels: []int64{0}})
		if err != nil {
			t.Fatal(err)
		}
		b.Recount(s, quota(t, 0, 0))
		if st := b.State(); st.Free != 0 || st.Debts[0] != math.MaxInt64 {
			t.Errorf("%+v", st)
		}
	})
}
