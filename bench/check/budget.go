package check

import "math/big"

// whole is 100 % in hundredths of a percent.
const whole = 10_000

// Spec is what bounds one bucket: Amount tokens an Interval of nanoseconds, of
// which TargetBP hundredths of a percent are handed out, and Burst tokens.
type Spec struct {
	Amount, Interval int64
	TargetBP         int64
	Burst            int64
}

// budget holds a history to "in every interval of length d at most burst + rate·d".
//
// Over all intervals that begin at some i and end now, what is left is
//
//	min over i of: burst at i + rate·(now − i) − taken from i on
//
// and that minimum needs no list: one more moment lowers every term by what was
// taken and raises it by what came in, and the interval that begins now has the
// burst. The history broke the bound if and only if the minimum is ever negative.
//
// It counts in units of which a token has interval · 10,000, so that nothing is
// rounded.
type budget struct {
	left, full, unit, perNano big.Int
	last                      int64
	scratch                   big.Int
}

func newBudget(spec Spec, now int64) *budget {
	b := &budget{last: now}
	b.shape(spec)
	b.left.Set(&b.full)
	return b
}

func (b *budget) shape(spec Spec) {
	b.unit.Mul(big.NewInt(spec.Interval), big.NewInt(whole))
	b.perNano.Mul(big.NewInt(spec.Amount), big.NewInt(spec.TargetBP))
	b.full.Mul(big.NewInt(spec.Burst), &b.unit)
}

func (b *budget) clone() *budget {
	c := &budget{last: b.last}
	c.left.Set(&b.left)
	c.full.Set(&b.full)
	c.unit.Set(&b.unit)
	c.perNano.Set(&b.perNano)
	return c
}

// advance lets time pass.
func (b *budget) advance(now int64) {
	if now <= b.last {
		return
	}
	b.scratch.SetInt64(now - b.last)
	b.scratch.Mul(&b.scratch, &b.perNano)
	b.left.Add(&b.left, &b.scratch)
	b.last = now
	b.clamp()
}

func (b *budget) clamp() {
	if b.left.Cmp(&b.full) > 0 {
		b.left.Set(&b.full)
	}
}

// take takes tokens and returns by how many the bound is broken now, rounded up.
func (b *budget) take(tokens int64) int64 {
	b.scratch.SetInt64(tokens)
	b.scratch.Mul(&b.scratch, &b.unit)
	b.left.Sub(&b.left, &b.scratch)
	if b.left.Sign() >= 0 {
		return 0
	}
	return -b.tokens()
}

// give puts tokens back.
func (b *budget) give(tokens int64) {
	b.scratch.SetInt64(tokens)
	b.scratch.Mul(&b.scratch, &b.unit)
	b.left.Add(&b.left, &b.scratch)
	b.clamp()
}

// change goes on under other numbers: the old ones count up to here, and a larger
// burst is no gift. What is left is rounded up to a unit of the new ones.
func (b *budget) change(spec Spec) {
	var old big.Int
	old.Set(&b.unit)
	b.shape(spec)
	b.left.Mul(&b.left, &b.unit)
	var rest big.Int
	b.left.QuoRem(&b.left, &old, &rest)
	if rest.Sign() > 0 {
		b.left.Add(&b.left, big.NewInt(1))
	}
	b.clamp()
}

// tokens is what is left, rounded down.
func (b *budget) tokens() int64 {
	var whole big.Int
	// Div rounds down for a positive divisor.
	return whole.Div(&b.left, &b.unit).Int64()
}
