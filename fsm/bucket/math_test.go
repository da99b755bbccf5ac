package bucket

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// drawSize is a number of any size, the edges of 63 bits among them.
func drawSize(t *rapid.T, what string, least int64) int64 {
	return rapid.OneOf(
		rapid.Int64Range(least, math.MaxInt64),
		rapid.Int64Range(least, 1<<33),
		rapid.SampledFrom([]int64{least, 1, 2, 1 << 31, 1 << 32, 1 << 33, math.MaxInt64 - 1, math.MaxInt64}),
	).Draw(t, what)
}

// clipped is n, or the largest number where it does not fit.
func clipped(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

func TestArithmeticAgreesWithBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawSize(t, "a", 0), drawSize(t, "b", 0), drawSize(t, "c", 1)
		product := times(num(a), b)
		up := sum(product, num(c-1))
		up.Quo(up, num(c))
		down := new(big.Int).Quo(product, num(c))
		level := rapid.Int64Range(0, c).Draw(t, "level")
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
	})
}
