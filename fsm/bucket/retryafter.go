package bucket

import (
	"math"
	"time"
)

// RetryAfter is how long a caller alone has to wait for Take(s, class, n) to
// say yes: whole milliseconds, rounded up, at least one. It is exact: one
// millisecond earlier Take still says no (G7). It is 0 where Take says yes
// already.
//
// never is true where no waiting helps: n below 1 or above the effective burst,
// a rate of zero, or a time beyond the end of authority time in 292 years.
//
// It follows the breakpoints of Advance on a copy. (n − level) ÷ rate would be
// too early where other sub-buckets fill first (T36).
func (b *Bucket) RetryAfter(s *Shape, class int, n int64) (wait time.Duration, never bool) {
	return b.RetryAfterLeaving(s, class, n, 0)
}

// RetryAfterLeaving is RetryAfter for TakeLeaving. From then on it says yes for as
// long as nobody takes; it may have done so for a moment before, while sub-buckets
// of other classes were not full. never is true also where only those help for whom
// the tokens are kept.
func (b *Bucket) RetryAfterLeaving(s *Shape, class int, n, keep int64) (wait time.Duration, never bool) {
	elapsed, ok := b.leavesIn(s, class, n, keep)
	if !ok {
		return 0, true
	}
	return roundUp(elapsed, b.remaining())
}

// leavesIn is after how many nanoseconds TakeLeaving says yes to stay with it: where
// there is so much that the class may take both, or where its own part pays.
func (b *Bucket) leavesIn(s *Shape, class int, n, keep int64) (elapsed uint64, ok bool) {
	elapsed, ok = b.affordsIn(s, class, n+keep)
	if keep == 0 {
		return elapsed, ok
	}
	own, pays := b.ownIn(s, class, n)
	if pays && (!ok || own < elapsed) {
		return own, true
	}
	return elapsed, ok
}

// ownIn is after how many nanoseconds the class's own part has n tokens, and it no
// debt. ok is false where it never has.
func (b *Bucket) ownIn(s *Shape, class int, n int64) (elapsed uint64, ok bool) {
	if n < 1 || n > s.classes[class].room/s.unit {
		return 0, false
	}
	var parts [MaxClasses]sub
	ahead := b.onto(parts[:], s)
	wants, weight := n*s.unit, s.classes[class].weight
	for {
		own, f := ahead.sub(class), ahead.flow(s)
		steps := f.steps
		switch {
		case own.debt == 0 && own.level >= wants:
			return elapsed, true
		case own.debt == 0 && weight == 0:
			return 0, false
		case own.debt == 0:
			steps = min(steps, uint64(divUp(wants-own.level, weight)))
		}
		if steps == forever {
			return 0, false
		}
		elapsed += ahead.leap(s, f, steps)
		if elapsed > ahead.remaining() {
			return 0, false
		}
	}
}

// affordsIn is after how many nanoseconds Take says yes for the first time. ok
// is false where it never does.
func (b *Bucket) affordsIn(s *Shape, class int, n int64) (elapsed uint64, ok bool) {
	if n < 1 || n > s.classes[class].effective {
		return 0, false
	}
	// The copy lies on the stack: a storm of denials makes no garbage.
	var parts [MaxClasses]sub
	ahead := b.onto(parts[:], s)
	wants := n * s.unit
	for !ahead.affords(class, wants) {
		f := ahead.flow(s)
		steps := f.steps
		if ahead.sub(class).debt == 0 {
			steps = min(steps, ahead.stepsUntil(s, f, class, wants))
		}
		if steps == forever {
			return 0, false
		}
		elapsed += ahead.leap(s, f, steps)
		if elapsed > ahead.remaining() {
			return 0, false
		}
	}
	return elapsed, true
}

// Needs is how many nanoseconds of refill it takes until TakeLeaving(s, class, n, keep)
// says yes, as RetryAfterLeaving counts them. It is for a key with a time of its own:
// what it takes of real time is up to its pace.
func (b *Bucket) Needs(s *Shape, class int, n, keep int64) (refill int64, never bool) {
	elapsed, ok := b.leavesIn(s, class, n, keep)
	if !ok {
		return 0, true
	}
	return int64(elapsed), false
}

// FullAt is when the bucket will be full, with its sub-buckets, and free of
// debt, if nobody takes from it. ok is false where it never will be, or not
// before the end of authority time.
func (b *Bucket) FullAt(s *Shape) (at Instant, ok bool) {
	var parts [MaxClasses]sub
	ahead := b.onto(parts[:], s)
	elapsed := uint64(0)
	for {
		f := ahead.flow(s)
		if f.steps == forever {
			return ahead.settled(s, f, elapsed)
		}
		elapsed += ahead.leap(s, f, f.steps)
		if elapsed > ahead.remaining() {
			return 0, false
		}
	}
}

// settled is FullAt where only the free tokens can still change.
func (b *Bucket) settled(s *Shape, f flow, elapsed uint64) (at Instant, ok bool) {
	for c, own := range b.subs {
		if own.debt > 0 || own.level < s.classes[c].room {
			return 0, false
		}
	}
	if room := s.full - b.reserved() - b.free; room > 0 {
		if f.free == 0 {
			return 0, false
		}
		elapsed += uint64(divUp(room, f.free))
	}
	if elapsed > b.remaining() {
		return 0, false
	}
	return b.last + Instant(elapsed), true
}

// onto copies b, with its parts in the given place, so that it can be advanced
// without touching b. Without classes and debt there are no parts to copy.
func (b *Bucket) onto(parts []sub, s *Shape) Bucket {
	ahead := Bucket{last: b.last, free: b.free}
	if b.subs != nil || s.named {
		ahead.subs = parts[:len(s.classes)]
		copy(ahead.subs, b.subs)
	}
	return ahead
}

// affords says whether the class may take the units.
func (b *Bucket) affords(class int, units int64) bool {
	own := b.sub(class)
	return own.debt == 0 && b.free+own.level >= units
}

// stepsUntil is after how many nanoseconds of f the class affords the units,
// which it doesn't yet though it has no debt; forever where it never does.
//
// Where the bucket gets full on the way the line that this follows goes on
// above the true one, but by then the class affords them: a full bucket leaves
// it its effective burst. From there on it always does, so that the wait is the
// first time and not just one time.
func (b *Bucket) stepsUntil(s *Shape, f flow, class int, units int64) uint64 {
	own := b.sub(class)
	gain := f.free
	if own.level < s.classes[class].room {
		gain += s.classes[class].weight
	}
	if gain == 0 {
		return forever
	}
	return uint64(divUp(units-b.free-own.level, gain))
}

// remaining is how many nanoseconds of authority time there are after Last.
func (b *Bucket) remaining() uint64 { return math.MaxInt64 - uint64(max(0, b.last)) }

// roundUp makes whole milliseconds of nanoseconds. A wait that ends after the
// last instant never ends.
func roundUp(elapsed, remaining uint64) (wait time.Duration, never bool) {
	const ms = uint64(time.Millisecond)
	up := (elapsed + ms - 1) / ms * ms
	if up > remaining {
		return 0, true
	}
	return time.Duration(up), false
}
