package failopen

import (
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// shareOf is the arithmetic of a share of a dimension: ppm millionths of its
// rate, and of its burst in whole tokens, but at least one where there is a
// share at all. (A bucket of less than a token would never grant. It starts
// empty, so that the one token is earned first: what is admitted since the start
// stays below the share of the rate.) It is nil where nothing is to be had.
//
// The rate is exact where 63 bits hold it. Where they don't it is a lower one, as
// close to it as they allow.
func shareOf(d Dimension, ppm int64) (*bucket.Shape, error) {
	if ppm == 0 || d.Amount == 0 || d.Burst == 0 {
		return nil, nil //nolint:nilnil // nil is the arithmetic of nothing.
	}
	spec := bucket.Spec{Target: bucket.Whole, Burst: max(1, mulDiv(d.Burst, ppm, WholePPM))}
	var ok bool
	if spec.Amount, spec.Interval, ok = exactRate(d, ppm, spec.Burst); !ok {
		spec.Amount, spec.Interval = lowerRate(d, ppm, spec.Burst)
	}
	return bucket.NewShape(spec)
}

// exactRate is amount × ppm in interval × WholePPM, reduced. ok is false where a
// bucket of that burst could not count it exactly.
func exactRate(d Dimension, ppm, burst int64) (amount int64, interval time.Duration, ok bool) {
	a := new(big.Int).Mul(big.NewInt(d.Amount), big.NewInt(ppm))
	i := new(big.Int).Mul(big.NewInt(int64(d.Interval)), big.NewInt(WholePPM))
	divisor := new(big.Int).GCD(nil, nil, a, i)
	a.Quo(a, divisor)
	i.Quo(i, divisor)
	if !i.IsInt64() || i.Int64() > math.MaxInt64/burst || !a.IsInt64() || a.Int64() > bucket.MaxTokens {
		return 0, 0, false
	}
	return a.Int64(), time.Duration(i.Int64()), true
}

// lowerRate keeps the amount, as a multiple, and stretches the interval, rounded
// up to whole nanoseconds. The larger the multiple, the less is lost.
func lowerRate(d Dimension, ppm, burst int64) (amount int64, interval time.Duration) {
	divisor := new(big.Int).GCD(nil, nil, big.NewInt(d.Amount), big.NewInt(int64(d.Interval))).Int64()
	a, i := d.Amount/divisor, int64(d.Interval)/divisor
	times := bucket.MaxTokens / a
	if one := mulDiv(i, WholePPM, ppm); one < math.MaxInt64 {
		times = min(times, math.MaxInt64/burst/(one+1))
	}
	times = max(1, times)
	stretched := new(big.Int).Mul(big.NewInt(i), big.NewInt(WholePPM))
	stretched.Mul(stretched, big.NewInt(times))
	stretched.Add(stretched, big.NewInt(ppm-1))
	stretched.Quo(stretched, big.NewInt(ppm))
	if !stretched.IsInt64() {
		// A token would come after the end of time.
		return 0, math.MaxInt64
	}
	return times * a, time.Duration(stretched.Int64())
}

// mulDiv is a × b ÷ c rounded down, or math.MaxInt64 where that does not fit.
// None is negative, c is positive.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}

// add is a + b, or math.MaxInt64 where that does not fit. Neither is negative.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
