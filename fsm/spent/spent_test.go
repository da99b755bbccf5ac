package spent

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPart: the part is what exact numbers give, rounded towards zero, at any size.
func TestPart(t *testing.T) {
	t.Parallel()
	sizes := []int64{
		math.MinInt64, math.MinInt64 + 1, -1 << 53, -3, -1, 0, 1, 2, 3, 999_999, 1_000_000, 1 << 53, math.MaxInt64,
	}
	for _, left := range sizes {
		for _, burst := range sizes {
			if burst < 0 {
				continue
			}
			want := big.NewInt(min(left, 0))
			if burst > 0 {
				want.Mul(big.NewInt(left), big.NewInt(1_000_000)).Quo(want, big.NewInt(burst))
			}
			switch {
			case want.IsInt64() && want.Int64() != math.MinInt64:
			case want.Sign() < 0:
				want.SetInt64(-math.MaxInt64)
			default:
				want.SetInt64(math.MaxInt64)
			}
			if got := Part(left, burst); got != want.Int64() && burst > 0 {
				t.Errorf("%d of %d: %d, want %v", left, burst, got, want)
			}
			if got := Part(left, burst); burst == 0 && got != min(left, 0) {
				t.Errorf("%d of none: %d", left, got)
			}
		}
	}
}

// TestTop: those that are kept are the first of all in order, in whatever order they come.
func TestTop(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var all []View
		for i := range chance.IntN(40) {
			all = append(all, View{
				Key: string(rune('a' + i)), Left: chance.Int64N(5), Debt: chance.Int64N(3), OpenLeases: chance.IntN(2),
			})
		}
		chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		top, kept := 1+chance.IntN(45), Top{}
		for _, v := range all {
			kept.Take(v, top)
		}
		slices.SortFunc(all, compare)
		want := append([]View{}, all[:min(top, len(all))]...)
		if diff := cmp.Diff(want, append([]View{}, kept.Sorted()...)); diff != "" {
			t.Fatalf("top %d (-want +got)\n%s", top, diff)
		}
	}
}
