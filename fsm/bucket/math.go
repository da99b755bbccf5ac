package bucket

import (
	"math"
	"math/bits"
)

// mulDiv is a × b ÷ c rounded down, or math.MaxInt64 where that does not fit.
// The product has 128 bits. a and b are not negative, c is positive.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}

// mulDivUp is mulDiv rounded up.
func mulDivUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

// mul is a × b, or math.MaxInt64 where that does not fit. Negative counts as 0.
func mul(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// add is a + b, or math.MaxInt64 where that does not fit. Neither is negative.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// divUp is a ÷ b rounded up. a is not negative, b is positive.
func divUp(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// pour is level + rate × steps, but at most most. It can be below level: then
// most is. No argument is negative.
func pour(level, rate int64, steps uint64, most int64) int64 {
	hi, lo := bits.Mul64(uint64(rate), steps)
	room := most - level
	if hi > 0 || room < 0 || lo >= uint64(room) {
		return most
	}
	return level + int64(lo)
}
