package bucket

import "math"

// Advance refills the bucket up to now. A now that is earlier than Last, or the
// same, does nothing: time that goes backwards mints nothing (A01).
//
// Each class's guaranteed refill pays its own debt, then fills its own
// sub-bucket; what is left over, and the refill guaranteed to nobody, pays the
// debts in listed order and then is free for all. So a debt is never paid out
// of what another class can still use (T17), and always out of what it can't
// (T18).
func (b *Bucket) Advance(s *Shape, now Instant) {
	if now <= b.last {
		return
	}
	// The difference fits 64 bits without a sign, whatever the signs are.
	b.refill(s, now, uint64(now)-uint64(b.last))
}

// AdvanceBy takes the bucket to now, and refills it as Advance does in so many
// nanoseconds: its key has a time of its own, which is slower. Where elapsed is
// the difference of one function of now, as that of fsm/pace, it does not matter
// either how time is cut. A now that is earlier than Last does nothing; less than
// nothing counts as nothing.
func (b *Bucket) AdvanceBy(s *Shape, now Instant, elapsed int64) {
	if now <= b.last {
		return
	}
	b.refill(s, now, uint64(max(0, elapsed)))
}

func (b *Bucket) refill(s *Shape, now Instant, left uint64) {
	b.last = now
	if b.subs == nil && !s.named {
		b.free = pour(b.free, s.total, left, s.full)
		return
	}
	b.grow(s)
	for left > 0 {
		f := b.flow(s)
		left -= b.leap(s, f, min(left, f.steps))
	}
	b.trim(s)
}

// flow is what one nanosecond does to a bucket, in units, and for how many
// nanoseconds it stays the same.
type flow struct {
	// free goes to the free tokens.
	free int64
	// debtor is the class that also gets the spare refill, -1 for none, and pays
	// its debt with pay.
	debtor int
	pay    int64
	// steps is how many nanoseconds pass before a debt or the room of a
	// sub-bucket is smaller than what flows into it: after them, it takes one
	// nanosecond of its own. forever means that nothing will change.
	steps uint64
}

const forever = math.MaxUint64

// flow finds where refill goes from now on. A debtor's guaranteed refill pays
// its debt, a sub-bucket that isn't full gets its own, all the rest is spare;
// spare goes to the first listed debtor alone, then to the free tokens.
func (b *Bucket) flow(s *Shape) flow {
	f := flow{free: s.spare, debtor: -1, steps: forever}
	for c := range s.classes {
		weight, own := s.classes[c].weight, b.sub(c)
		switch room := s.classes[c].room - own.level; {
		case own.debt > 0 && f.debtor < 0:
			// How long it takes is known once the spare refill is.
			f.debtor = c
		case own.debt > 0:
			f.until(own.debt, weight)
		case room > 0:
			f.until(room, weight)
		default:
			f.free += weight
		}
	}
	if f.debtor >= 0 {
		f.pay = s.classes[f.debtor].weight + f.free
		f.free = 0
		f.until(b.subs[f.debtor].debt, f.pay)
	}
	return f
}

// until ends the flow before rate has used up what.
func (f *flow) until(what, rate int64) {
	if rate > 0 {
		f.steps = min(f.steps, uint64(what/rate))
	}
}

// leap lets f run for steps nanoseconds, at most f.steps, and returns how many
// passed: where f lasts for less than one nanosecond, one passes in which
// something is settled for good.
func (b *Bucket) leap(s *Shape, f flow, steps uint64) uint64 {
	if steps == 0 {
		b.nanosecond(s)
		return 1
	}
	for c := range b.subs {
		own, weight := &b.subs[c], s.classes[c].weight
		switch {
		case c == f.debtor:
			own.debt = drain(own.debt, f.pay, steps)
		case own.debt > 0:
			own.debt = drain(own.debt, weight, steps)
		default:
			own.level = pour(own.level, weight, steps, s.classes[c].room)
		}
	}
	// The limit of the free tokens falls as the sub-buckets fill up. It falls
	// evenly, so that the limit at the end is the only one that counts.
	b.free = pour(b.free, f.free, steps, s.full-b.reserved())
	return steps
}

// drain is debt − rate × steps. The steps of a flow never pay more than the
// debt, so that the product fits.
func drain(debt, rate int64, steps uint64) int64 {
	if rate == 0 {
		return debt
	}
	return debt - rate*int64(steps)
}

// nanosecond is the definition of what refill does. leap computes many of them
// at once where they are all alike.
func (b *Bucket) nanosecond(s *Shape) {
	spare := s.spare
	for c := range b.subs {
		own, in := &b.subs[c], s.classes[c].weight
		paid := min(in, own.debt)
		own.debt -= paid
		in -= paid
		part := min(in, s.classes[c].room-own.level)
		own.level += part
		spare += in - part
	}
	for c := range b.subs {
		paid := min(spare, b.subs[c].debt)
		b.subs[c].debt -= paid
		spare -= paid
	}
	b.free = pour(b.free, spare, 1, s.full-b.reserved())
}
