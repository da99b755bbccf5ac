package bucket

import (
	"math"
	"math/big"
	"time"
)

// Instant is authority time: nanoseconds since the cluster began. It is a type
// of its own so that no node's local clock is passed for it.
type Instant int64

// Shape is the arithmetic of a Spec: how many units a token has, and how many
// of them a nanosecond brings to whom. It never changes.
type Shape struct {
	// unit is the number of units in one token, at least 1.
	unit int64
	// total is the refill of one nanosecond in units, and spare the part of it
	// that is guaranteed to nobody.
	total, spare int64
	// full is the burst in units, debtMax the largest debt of a class in units.
	full, debtMax int64
	// burst and maxDebt are the same in tokens.
	burst, maxDebt int64
	// classes has at least one element; named says whether the spec had any.
	classes []class
	named   bool
}

// class is one class of a shape, in units but for the last two.
type class struct {
	// weight is the guaranteed refill of one nanosecond.
	weight int64
	// room is the size of the sub-bucket.
	room int64
	// subBurst is the size of the sub-bucket in tokens, and effective the most
	// tokens that a request of this class can get at once.
	subBurst, effective int64
}

// NewShape works out the arithmetic of spec. It returns a *SpecError where a
// field is out of its range, where a class could never be served, or where the
// numbers don't fit 63 bits: everything after it is exact.
func NewShape(spec Spec) (*Shape, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	s := &Shape{burst: spec.Burst, maxDebt: spec.MaxDebt, named: len(spec.Classes) > 0}
	listed := spec.Classes
	if !s.named {
		listed = []ClassSpec{{}}
	}
	if err := s.weigh(spec, listed); err != nil {
		return nil, err
	}
	subBursts := int64(0)
	for i, c := range listed {
		subBursts += c.SubBurst
		s.classes[i].subBurst = c.SubBurst
		s.classes[i].room = c.SubBurst * s.unit
	}
	for i, c := range listed {
		s.classes[i].effective = spec.Burst - (subBursts - c.SubBurst)
	}
	return s, nil
}

// weigh finds the smallest unit in which every weight is whole. Before it is
// reduced, a token has interval × Whole² units (Whole for the target, Whole for
// the shares) and a class gets amount × target × share of them a nanosecond.
func (s *Shape) weigh(spec Spec, listed []ClassSpec) error {
	unit := big.NewInt(int64(spec.Interval))
	unit.Mul(unit, big.NewInt(Whole*Whole))
	perShare := big.NewInt(spec.Amount)
	perShare.Mul(perShare, big.NewInt(spec.Target))

	left := int64(Whole)
	divisor := new(big.Int).Set(unit)
	weights := make([]*big.Int, len(listed))
	for i, c := range listed {
		left -= c.Share
		weights[i] = new(big.Int).Mul(perShare, big.NewInt(c.Share))
		divisor.GCD(nil, nil, divisor, weights[i])
	}
	spare := new(big.Int).Mul(perShare, big.NewInt(left))
	divisor.GCD(nil, nil, divisor, spare)
	total := new(big.Int).Mul(perShare, big.NewInt(Whole))

	unit.Quo(unit, divisor)
	if err := s.measure(spec, unit); err != nil {
		return err
	}
	total.Quo(total, divisor)
	if !total.IsInt64() {
		return wrong("amount", "%d in %v: too large to be counted exactly with these shares; "+
			"choose rounder shares or a smaller amount", spec.Amount, spec.Interval)
	}
	s.total = total.Int64()
	s.spare = spare.Quo(spare, divisor).Int64()
	s.classes = make([]class, len(listed))
	for i, w := range weights {
		s.classes[i].weight = w.Quo(w, divisor).Int64()
	}
	return nil
}

// measure refuses a burst or a debt that does not fit 63 bits in this unit, and
// says what would fit.
func (s *Shape) measure(spec Spec, unit *big.Int) error {
	if !unit.IsInt64() {
		return wrong("interval", "%v: too long to be counted exactly at an amount of %d "+
			"with this target and these shares; choose a rounder rate", spec.Interval, spec.Amount)
	}
	s.unit = unit.Int64()
	for _, f := range []struct {
		field  string
		tokens int64
		units  *int64
	}{{"burst", spec.Burst, &s.full}, {"max_debt", spec.MaxDebt, &s.debtMax}} {
		units := new(big.Int).Mul(unit, big.NewInt(f.tokens))
		if !units.IsInt64() {
			most := new(big.Int).Quo(big.NewInt(math.MaxInt64), unit)
			return wrong(f.field, "%d: too large to be counted exactly at %d in %v "+
				"with this target and these shares; choose a rounder rate, or at most %v",
				f.tokens, spec.Amount, spec.Interval, most)
		}
		*f.units = units.Int64()
	}
	return nil
}

// Burst is the most tokens that the bucket holds.
func (s *Shape) Burst() int64 { return s.burst }

// MaxDebt is the most tokens of debt that a class may have.
func (s *Shape) MaxDebt() int64 { return s.maxDebt }

// Classes is the number of classes, at least 1: without any there is one
// unnamed class.
func (s *Shape) Classes() int { return len(s.classes) }

// SubBurst is the size of the class's own sub-bucket in tokens.
func (s *Shape) SubBurst(class int) int64 { return s.classes[class].subBurst }

// EffectiveBurst is the most tokens that a request of the class can get at
// once: the burst less what the other classes keep for themselves (T19). A
// request of exactly as much is served in the end, a larger one never.
func (s *Shape) EffectiveBurst(class int) int64 { return s.classes[class].effective }

// IsZero says that nothing is ever refilled.
func (s *Shape) IsZero() bool { return s.total == 0 }

// Unit is the number of units in one token, at least 1.
func (s *Shape) Unit() int64 { return s.unit }

// TokensIn is the refill of d after target in whole tokens, rounded down. It is
// 0 for a negative d and math.MaxInt64 where it does not fit.
func (s *Shape) TokensIn(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return mulDiv(s.total, int64(d), s.unit)
}
