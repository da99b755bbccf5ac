package bucket

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// State is a Bucket in the open, for snapshots. The numbers are units of its
// shape.
type State struct {
	Last Instant
	Free int64
	// Levels and Debts have one element for each class, or none where all are
	// zero.
	Levels, Debts []int64
}

// Last is the authority time that the bucket has reached.
func (b *Bucket) Last() Instant { return b.last }

// Level is the tokens in the bucket, free and in sub-buckets, rounded down.
func (b *Bucket) Level(s *Shape) int64 { return (b.free + b.reserved()) / s.unit }

// ClassLevel is the tokens in the class's own sub-bucket, rounded down.
func (b *Bucket) ClassLevel(s *Shape, class int) int64 { return b.sub(class).level / s.unit }

// Room is how many more tokens fit, rounded down.
func (b *Bucket) Room(s *Shape) int64 { return max(0, s.full-b.free-b.reserved()) / s.unit }

// Available is the tokens that the class could take now, rounded down: none
// while it is in debt.
func (b *Bucket) Available(s *Shape, class int) int64 {
	own := b.sub(class)
	if own.debt > 0 {
		return 0
	}
	return min((b.free+own.level)/s.unit, s.classes[class].effective)
}

// Debt is the tokens that the class owes, rounded up: it is 0 only where
// nothing is owed.
func (b *Bucket) Debt(s *Shape, class int) int64 { return divUp(b.sub(class).debt, s.unit) }

// Remaining is the tokens in the bucket less all debts, rounded down; it may be
// negative. It is math.MinInt64 where it does not fit.
func (b *Bucket) Remaining(s *Shape) int64 {
	// Sixteen debts of 63 bits have 67.
	var hi, lo, carry uint64
	for _, own := range b.subs {
		lo, carry = bits.Add64(lo, uint64(own.debt), 0)
		hi += carry
	}
	level := uint64(b.free + b.reserved())
	if hi == 0 && lo <= level {
		return int64((level - lo) / uint64(s.unit))
	}
	lo, borrow := bits.Sub64(lo, level, 0)
	hi -= borrow
	if hi >= uint64(s.unit) {
		return math.MinInt64
	}
	q, r := bits.Div64(hi, lo, uint64(s.unit))
	if r > 0 {
		q++
	}
	if q > math.MaxInt64 {
		return math.MinInt64
	}
	return -int64(q)
}

// Clone copies the bucket with its parts.
func (b *Bucket) Clone() Bucket {
	return Bucket{last: b.last, free: b.free, subs: slices.Clone(b.subs)}
}

// Equal says whether both are in the same state at the same time. Parts that
// are all zero equal parts that are not there.
func (b *Bucket) Equal(o *Bucket) bool {
	if b.last != o.last || b.free != o.free {
		return false
	}
	for c := range max(len(b.subs), len(o.subs)) {
		if b.part(c) != o.part(c) {
			return false
		}
	}
	return true
}

// part is sub for a bucket whose number of classes isn't known.
func (b *Bucket) part(c int) sub {
	if c < len(b.subs) {
		return b.subs[c]
	}
	return sub{}
}

// Walk calls visit with the whole state, number by number, always in the same
// order: the time, the free units, then level and debt of each class up to the
// last one that has any. Buckets that are Equal are walked alike. It allocates
// nothing.
func (b *Bucket) Walk(visit func(int64)) {
	visit(int64(b.last))
	visit(b.free)
	used := len(b.subs)
	for used > 0 && b.subs[used-1] == (sub{}) {
		used--
	}
	for _, own := range b.subs[:used] {
		visit(own.level)
		visit(own.debt)
	}
}

// State is a copy of the state.
func (b *Bucket) State() State {
	st := State{Last: b.last, Free: b.free}
	if !slices.ContainsFunc(b.subs, func(own sub) bool { return own != sub{} }) {
		return st
	}
	st.Levels = make([]int64, len(b.subs))
	st.Debts = make([]int64, len(b.subs))
	for c, own := range b.subs {
		st.Levels[c], st.Debts[c] = own.level, own.debt
	}
	return st
}

// FromState makes a bucket of a state that was saved under the same shape. It
// refuses a state that no bucket of this shape can have.
func FromState(s *Shape, st State) (Bucket, error) {
	b := Bucket{last: st.Last, free: st.Free}
	if st.Last < 0 {
		return Bucket{}, fmt.Errorf("last %d: must not be negative", st.Last)
	}
	if err := stateBetween("free", -1, st.Free, s.full); err != nil {
		return Bucket{}, err
	}
	if n := len(st.Levels); n != 0 && n != len(s.classes) {
		return Bucket{}, fmt.Errorf("levels of %d classes, but the limit has %d", n, len(s.classes))
	}
	if n := len(st.Debts); n != 0 && n != len(s.classes) {
		return Bucket{}, fmt.Errorf("debts of %d classes, but the limit has %d", n, len(s.classes))
	}
	room := s.full - st.Free
	for c, level := range st.Levels {
		if err := stateBetween("levels", c, level, min(room, s.classes[c].room)); err != nil {
			return Bucket{}, err
		}
		room -= level
		b.grow(s)
		b.subs[c].level = level
	}
	for c, debt := range st.Debts {
		if err := stateBetween("debts", c, debt, math.MaxInt64); err != nil {
			return Bucket{}, err
		}
		b.grow(s)
		b.subs[c].debt = debt
	}
	b.trim(s)
	return b, nil
}

func stateBetween(field string, class int, units, most int64) error {
	if units >= 0 && units <= most {
		return nil
	}
	if class >= 0 {
		field = fmt.Sprintf("%s[%d]", field, class)
	}
	return fmt.Errorf("%s %d: must be from 0 to %d units", field, units, most)
}
