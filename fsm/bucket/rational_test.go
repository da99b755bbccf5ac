package bucket

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rational is a bucket without classes as a schoolbook would write it: fractions
// of tokens, level = min(burst, level + rate × time), a negative level for debt.
type rational struct {
	last                 int64
	rate, burst, maxDebt *big.Rat
	level                *big.Rat
}

func newRational(spec Spec) *rational {
	rate := big.NewRat(spec.Amount, int64(spec.Interval))
	return &rational{
		rate:    rate.Mul(rate, big.NewRat(spec.Target, Whole)),
		burst:   big.NewRat(spec.Burst, 1),
		maxDebt: big.NewRat(-spec.MaxDebt, 1),
		level:   big.NewRat(spec.Burst, 1),
	}
}

func (r *rational) raise(by *big.Rat) {
	if r.level = new(big.Rat).Add(r.level, by); r.level.Cmp(r.burst) > 0 {
		r.level = r.burst
	}
}

func (r *rational) advance(now int64) {
	if now <= r.last {
		return
	}
	by := big.NewRat(now-r.last, 1)
	r.last = now
	r.raise(by.Mul(by, r.rate))
}

func (r *rational) take(n int64) bool {
	left := new(big.Rat).Sub(r.level, big.NewRat(n, 1))
	if left.Sign() < 0 {
		return false
	}
	r.level = left
	return true
}

func (r *rational) excess(n int64) {
	r.level = new(big.Rat).Sub(r.level, big.NewRat(n, 1))
	if r.level.Cmp(r.maxDebt) < 0 {
		r.level = r.maxDebt
	}
}

// wait is ⌈(n − level) ÷ rate⌉ in milliseconds.
func (r *rational) wait(n int64) time.Duration {
	missing := new(big.Rat).Sub(big.NewRat(n, 1), r.level)
	missing.Quo(missing, r.rate).Quo(missing, big.NewRat(int64(time.Millisecond), 1))
	up := new(big.Int).Add(missing.Num(), less(missing.Denom(), num(1)))
	return time.Duration(up.Quo(up, missing.Denom()).Int64()) * time.Millisecond
}

// drawPlain draws a limit without classes, of any size.
func drawPlain(t *rapid.T) Spec {
	spec := Spec{
		Amount:   rapid.Int64Range(1, 10_000_000_000).Draw(t, "amount"),
		Interval: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "interval")),
		Target:   rapid.Int64Range(1, Whole).Draw(t, "target"),
		Burst:    rapid.Int64Range(1, 1000).Draw(t, "burst"),
		MaxDebt:  rapid.Int64Range(0, 1000).Draw(t, "max_debt"),
	}
	if _, err := NewShape(spec); err != nil {
		// A rate that odd can't be counted exactly at this size.
		spec.Target = Whole
	}
	return spec
}

func TestRationalOracleAgreesOnLargeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawPlain(t)
		s := mustShape(t, spec)
		b, r := s.Full(0), newRational(spec)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now := int64(b.Last()) + drawPause(t)%int64(24*365*time.Hour) - int64(time.Second)
			b.Advance(s, Instant(now))
			r.advance(now)
			n := rapid.Int64Range(1, spec.Burst).Draw(t, "n")
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0, 1:
				if _, ok := b.Take(s, 0, n); ok != r.take(n) {
					t.Fatalf("Take(%d) = %v at a level of %v", n, ok, r.level)
				} else if ok {
					break
				}
				if wait, isNever := b.RetryAfter(s, 0, n); isNever || wait != r.wait(n) {
					t.Fatalf("RetryAfter(%d) = %v, %v, want %v", n, wait, isNever, r.wait(n))
				}
			case 2:
				b.Refund(s, 0, n, 0)
				r.raise(big.NewRat(n, 1))
			case 3:
				b.Excess(s, 0, n)
				r.excess(n)
			}
			got := big.NewRat(b.free-b.sub(0).debt, s.unit)
			if got.Cmp(r.level) != 0 {
				t.Fatalf("level %v, want %v\nspec %+v", got, r.level, spec)
			}
			floor := new(big.Int).Div(r.level.Num(), r.level.Denom())
			if got := b.Remaining(s); got != floor.Int64() {
				t.Fatalf("remaining %d of %v, want %v", got, r.level, floor)
			}
		}
	})
}
