package fsm

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/feedback"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/shares"
	"github.com/quorlease/quorlease/fsm/state"
)

// target is one key of one limit that is charged, in one dimension or in
// several.
type target struct {
	lim  *state.Limit
	name string
	// key is nil for one never seen.
	key *state.Key
	// counts is what the limit counts for the key now.
	counts *lineage.Variant
	// control is what feedback did to the key, nil for nothing, passage how its time goes
	// by.
	control *record.Control
	passage shares.Passage
	// takes says that some charge of the key takes something.
	takes bool
	// held is everything at the version now, where the key has still to pass
	// versions or was never seen; else nil.
	held []lineage.Held
}

// target is the index of the key among the targets; lines of one key follow one
// another.
func (p *plan) target(m *Machine, lim *state.Limit, name string) int32 {
	last := int32(len(p.targets)) - 1
	if last >= 0 && p.targets[last].lim == lim && p.targets[last].name == name {
		return last
	}
	p.targets = append(p.targets, m.targetOf(lim, name, m.state.FindKey(lim.ID, name)))
	return last + 1
}

func (m *Machine) targetOf(lim *state.Limit, name string, key *state.Key) target {
	return target{
		lim: lim, name: name, key: key, counts: lim.Now().For(name), control: m.state.ControlOf(key),
		passage: m.state.Passage(lim, key),
	}
}

// look works out one charge on a copy of its bucket.
func (p *plan) look(m *Machine, l *line) {
	if l.dimension < 0 {
		return
	}
	t := &p.targets[l.target]
	var reason logv1.Reason
	var wait int64
	if l.slots {
		reason, wait = p.lookSlots(t, l)
	} else {
		reason, wait = p.lookTokens(m, t, l)
	}
	if t.control != nil {
		reason, wait = feedback.Closing(t.control, p.by.now, reason, wait)
	}
	if reason != logv1.Reason_REASON_UNSPECIFIED {
		p.deny(l, reason, wait)
	}
	t.takes = t.takes || !l.refused
}

// lookTokens takes from a copy of the bucket, or says why it can't pay.
func (p *plan) lookTokens(m *Machine, t *target, l *line) (logv1.Reason, int64) {
	shape := t.counts.Dimensions[l.dimension].Shape
	l.after = t.bucket(int(l.dimension), p.by.now)
	l.left = l.after.Remaining(shape)
	amount := l.charge.GetAmount()
	if l.charge.GetEscrow() != nil && !p.by.untracked {
		class := t.counts.Dimensions[l.dimension].ClassName(int(l.class))
		if l.escrow = m.escrow.Pays(l.charge, p.of(l), class); l.escrow != nil {
			return logv1.Reason_REASON_UNSPECIFIED, 0
		}
	}
	took, ok := l.after.TakeLeaving(shape, int(l.class), amount, l.charge.GetKeep())
	switch {
	case ok:
		l.took = took
		return logv1.Reason_REASON_UNSPECIFIED, 0
	case t.lim.Limit.GetKind() == logv1.Kind_KIND_QUOTA:
		return t.exhausted(shape, &l.after, amount, m.wallAt(p.by.now))
	}
	return t.refusing(shape, &l.after, int(l.class), amount, l.charge.GetKeep())
}

// exhausted says why a quota can't pay and how long it will not: until its window is
// over.
func (t *target) exhausted(s *bucket.Shape, b *bucket.Bucket, n, wall int64) (logv1.Reason, int64) {
	switch {
	case s.Burst() == 0:
		return logv1.Reason_REASON_ZERO_LIMIT, 0
	case n > s.Burst():
		return logv1.Reason_REASON_EXCEEDS_BURST, 0
	}
	wait := unknownWait
	if ends := t.lim.Now().Ends; ends > 0 {
		// Where the window is over the next one is about to begin.
		wait = wholeMillis(max(0, ends-wall))
	}
	if b.Debt(s, 0) > 0 {
		return logv1.Reason_REASON_DEBT, wait
	}
	return logv1.Reason_REASON_QUOTA, wait
}

// lookSlots counts what is held of the key, or says why there is no room.
func (p *plan) lookSlots(t *target, l *line) (logv1.Reason, int64) {
	most, n := t.counts.Dimensions[l.dimension].Shape.Burst(), l.charge.GetAmount()
	used := t.lim.InUse(t.name, p.by.now)
	l.left = max(0, most-used)
	switch {
	case most == 0:
		return logv1.Reason_REASON_ZERO_LIMIT, 0
	case n > most:
		return logv1.Reason_REASON_EXCEEDS_BURST, 0
	case p.by.untracked:
		// Only a limit that does not enforce gets here: it never would.
		return logv1.Reason_REASON_CONCURRENCY, 0
	case used+n+l.charge.GetKeep() > most:
		return logv1.Reason_REASON_CONCURRENCY, t.freedIn(p.by.now, used, n, l.charge.GetKeep(), most)
	}
	return logv1.Reason_REASON_UNSPECIFIED, 0
}

// freedIn is how long it takes at most until n of the slots can be had beside those
// that are kept: every lease ends, those that were granted under a higher limit too.
func (t *target) freedIn(now bucket.Instant, used, n, keep, most int64) int64 {
	wait, over := int64(0), used+n+keep-most
	if n+keep > most {
		// Only the going of those helps for whom they are kept.
		wait, over = unknownWait, used+n-most
	}
	if over > 0 {
		wait = max(wait, wholeMillis(int64(t.lim.FreedBy(t.name, now, over)-now)))
	}
	return wait
}

// bucket is a copy of the bucket of a dimension, at the version now and at now.
func (t *target) bucket(dimension int, now bucket.Instant) bucket.Bucket {
	b := t.carried(dimension)
	passage := t.passage
	passage.Now = now
	passage.Bring(&b, t.counts.Dimensions[dimension].Shape, 0)
	return b
}

// carried is the bucket at the time that its key has reached. One that feedback controls
// has no time of its own left to catch up with before a change of its limit.
func (t *target) carried(dimension int) bucket.Bucket {
	v := t.lim.Now()
	if t.key != nil && t.key.Passed == v.Number {
		return t.key.Held(dimension).Bucket.Clone()
	}
	if t.key == nil {
		return t.counts.Dimensions[dimension].Pristine.Clone()
	}
	if t.held == nil {
		t.held = t.lim.Pass(t.name, t.key.All(t.lim.At(t.key.Passed)), t.key.Passed)
	}
	return t.held[dimension].Bucket.Clone()
}

// refusing says why a bucket can't pay and how long it will not; 0 is never. keep is
// what it has to leave to those who wait.
func (t *target) refusing(s *bucket.Shape, b *bucket.Bucket, class int, n, keep int64) (logv1.Reason, int64) {
	switch {
	case s.IsZero():
		// Nothing will ever flow in.
		return logv1.Reason_REASON_ZERO_LIMIT, 0
	case n > s.EffectiveBurst(class):
		return logv1.Reason_REASON_EXCEEDS_BURST, 0
	}
	wait, never := t.retryAfter(s, b, class, n, 0)
	if never {
		// Beyond the end of authority time.
		return logv1.Reason_REASON_ZERO_LIMIT, 0
	}
	if keep > 0 {
		beside, only := t.retryAfter(s, b, class, n, keep)
		if only {
			// The leader knows when they will have gone.
			beside = max(wait, unknownWait)
		}
		wait = beside
	}
	if b.Debt(s, class) > 0 {
		return logv1.Reason_REASON_DEBT, wait
	}
	return logv1.Reason_REASON_RATE, wait
}

// retryAfter is how long a bucket that has reached now needs, by the key's own time.
func (t *target) retryAfter(s *bucket.Shape, b *bucket.Bucket, class int, n, keep int64) (wait int64, never bool) {
	if t.control == nil {
		plain, never := b.RetryAfterLeaving(s, class, n, keep)
		return int64(plain), never
	}
	refill, never := b.Needs(s, class, n, keep)
	if never {
		return 0, true
	}
	at, ok := t.control.Pace.Invert(b.Last(), refill)
	if !ok {
		return 0, true
	}
	return wholeMillis(int64(at - b.Last())), false
}
