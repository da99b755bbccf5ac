package bucket

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// clipped is n, or the largest number where it does not fit.
func clipped(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// requireArithmetic compares every function of math.go. None of the numbers is
// negative, c is positive, level is at most c.
func requireArithmetic(t rapid.TB, a, b, c, level int64) {
	t.Helper()
	product := times(num(a), b)
	up := sum(product, num(c-1))
	up.Quo(up, num(c))
	down := new(big.Int).Quo(product, num(c))
	for what, pair := range map[string][2]int64{
		"mul":      {mul(a, b), clipped(product)},
		"add":      {add(a, b), clipped(sum(num(a), num(b)))},
		"mulDiv":   {mulDiv(a, b, c), clipped(down)},
		"mulDivUp": {mulDivUp(a, b, c), clipped(up)},
		"divUp":    {divUp(a, c), clipped(new(big.Int).Quo(sum(num(a), num(c-1)), num(c)))},
		"pour":     {pour(level, a, uint64(b), c), clipped(lesser(sum(num(level), product), num(c)))},
		"over":     {pour(c, a, uint64(b), level), level},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s of %d, %d, %d (level %d): got %d, want %d", what, a, b, c, level, pair[0], pair[1])
		}
	}
	if got := mul(-a, b) | mul(a, -b); got != 0 {
		t.Errorf("mul of a negative: got %d, want 0", got)
	}
}

func TestArithmeticAgreesWithBig(t *testing.T) {
	t.Run("edges", func(t *testing.T) {
		edges := []int64{0, 1, 2, 3, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 33, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
		for _, a := range edges {
			for _, b := range edges {
				for _, c := range edges[1:] {
					requireArithmetic(t, a, b, c, min(a, c))
				}
			}
		}
	})
	t.Run("any", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			any63 := rapid.Int64Range(0, math.MaxInt64)
			c := rapid.Int64Range(1, math.MaxInt64).Draw(t, "c")
			requireArithmetic(t, any63.Draw(t, "a"), any63.Draw(t, "b"), c,
				rapid.Int64Range(0, c).Draw(t, "level"))
		})
	})
}
