package bucket

import "math/bits"

// Bucket is the state of one bucket, in units of its Shape. The zero Bucket is
// an empty one at time 0. It is 40 bytes, because there are a million of them.
type Bucket struct {
	last Instant
	// free is what any class may take. With the levels of all sub-buckets it is
	// at most the burst, and never negative: a class owes, not the bucket (T17).
	free int64
	// subs has one element for each class, or is nil where all are zero.
	subs []sub
}

// sub is what belongs to one class.
type sub struct {
	level int64
	debt  int64
}

// Full is a full bucket at now; its sub-buckets are full too.
func (s *Shape) Full(now Instant) Bucket {
	b := Bucket{last: now}
	b.Reset(s)
	return b
}

// Empty is an empty bucket without debt at now.
func (s *Shape) Empty(now Instant) Bucket { return Bucket{last: now} }

// Take takes n tokens for class, its own first, or nothing at all. took is what
// came from the class's own sub-bucket, in units of this shape; a later Refund
// wants it. It is refused where the class is in debt, where free tokens and the
// class's own don't suffice, and where n is below 1 or above the effective
// burst: such a request is never served, whatever happens to lie in the bucket
// now (G6).
//
// A refusal changes nothing (G7).
func (b *Bucket) Take(s *Shape, class int, n int64) (took int64, ok bool) {
	return b.TakeLeaving(s, class, n, 0)
}

// TakeLeaving is Take where keep tokens, 0 or more, have to stay among the free
// ones: it takes what is free beyond them, and the class's own.
func (b *Bucket) TakeLeaving(s *Shape, class int, n, keep int64) (took int64, ok bool) {
	if n < 1 || n > s.classes[class].effective {
		return 0, false
	}
	own := b.sub(class)
	// It fits: n is at most the burst.
	want := n * s.unit
	if own.debt > 0 || want > max(0, b.free-mul(keep, s.unit))+own.level {
		return 0, false
	}
	took = min(own.level, want)
	if took > 0 {
		b.subs[class].level -= took
	}
	b.free -= want - took
	return took, true
}

// Refund gives n tokens back that class had taken, of which took units came
// from its own sub-bucket. They pay the class's debt first. Then as much as was
// taken from the sub-bucket, and as it has room for, goes back there: with all
// of it going to everybody, a class that stays inside its guarantee would be
// refused (T20). The rest is free. What doesn't fit the burst is lost.
//
// took is in units of this shape: Rescale it when the limit has changed.
func (b *Bucket) Refund(s *Shape, class int, n, took int64) {
	back := mul(n, s.unit)
	if back == 0 {
		return
	}
	if b.subs != nil {
		own := &b.subs[class]
		paid := min(back, own.debt)
		own.debt -= paid
		back -= paid
	}
	if part := min(back, took, s.classes[class].room-b.sub(class).level); part > 0 {
		b.grow(s)
		b.subs[class].level += part
		back -= part
	}
	b.free = pour(b.free, back, 1, s.full-b.reserved())
	b.trim(s)
}

// Excess books usage of n tokens above what was taken. It takes what the class
// could take now; the rest is debt of the class, up to MaxDebt. It returns the
// tokens beyond that, which nobody will pay; a fraction counts as a whole
// token, so that zero means that nothing was written off.
func (b *Bucket) Excess(s *Shape, class int, n int64) (writtenOff int64) {
	if n < 1 {
		return 0
	}
	// n and the unit are below 2^63, their product may not be.
	hi, lo := bits.Mul64(uint64(n), uint64(s.unit))
	own := b.sub(class)
	taken := b.free + own.level
	if hi == 0 && lo <= uint64(taken) {
		taken = int64(lo)
	}
	part := min(own.level, taken)
	if part > 0 {
		b.subs[class].level -= part
	}
	b.free -= taken - part
	lo, borrow := bits.Sub64(lo, uint64(taken), 0)
	hi -= borrow
	if hi == 0 && lo == 0 {
		return 0
	}
	// A debt may already be above the bound when the bound was lowered.
	owed := max(0, s.debtMax-own.debt)
	if hi == 0 && lo <= uint64(owed) {
		owed = int64(lo)
	}
	if owed > 0 {
		b.grow(s)
		b.subs[class].debt += owed
	}
	lo, borrow = bits.Sub64(lo, uint64(owed), 0)
	hi -= borrow
	// The quotient is at most n, so that hi is below the unit.
	beyond, rest := bits.Div64(hi, lo, uint64(s.unit))
	if rest > 0 {
		beyond++
	}
	return int64(beyond)
}

// Lower takes n tokens out of the bucket, or all that there are: free ones
// first, then those of the classes, the last listed first. It makes no debt.
func (b *Bucket) Lower(s *Shape, n int64) {
	gone := mul(n, s.unit)
	part := min(gone, b.free)
	b.free -= part
	gone -= part
	for c := len(b.subs) - 1; c >= 0 && gone > 0; c-- {
		part = min(gone, b.subs[c].level)
		b.subs[c].level -= part
		gone -= part
	}
}

// Raise adds n free tokens, as far as the burst has room. It pays no debt.
func (b *Bucket) Raise(s *Shape, n int64) {
	b.free = pour(b.free, mul(n, s.unit), 1, s.full-b.reserved())
}

// Reset fills the bucket with its sub-buckets and forgives every debt.
func (b *Bucket) Reset(s *Shape) {
	b.free = s.full
	if !s.named {
		b.subs = nil
		return
	}
	b.grow(s)
	for c := range b.subs {
		b.subs[c] = sub{level: s.classes[c].room}
		b.free -= s.classes[c].room
	}
}

// sub is the class's part; nothing where there are no parts.
func (b *Bucket) sub(class int) sub {
	if b.subs == nil {
		return sub{}
	}
	return b.subs[class]
}

// grow makes place for the parts of the classes.
func (b *Bucket) grow(s *Shape) {
	if b.subs == nil {
		b.subs = make([]sub, len(s.classes))
	}
}

// trim gives up the place of the unnamed class once its debt is paid. Named
// classes keep theirs: it would be needed again at the next refill.
func (b *Bucket) trim(s *Shape) {
	if b.subs != nil && !s.named && b.subs[0] == (sub{}) {
		b.subs = nil
	}
}

// reserved is what lies in the sub-buckets.
func (b *Bucket) reserved() int64 {
	sum := int64(0)
	for _, own := range b.subs {
		sum += own.level
	}
	return sum
}
