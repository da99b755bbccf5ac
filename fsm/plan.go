package fsm

import (
	"cmp"
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/feedback"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// plan is an acquire thought through on copies: what every charge would do, and
// what stands against it. Nothing of the state has changed until commit (G3,
// G7). The parts are kept for the next plan.
type plan struct {
	lines   []line
	targets []target
	// denials are the longest wait first, never before all; warnings are the same of
	// limits that do not enforce.
	denials, warnings []*logv1.Denial
}

// target is one key of one limit that is charged, in one dimension or in
// several.
type target struct {
	lim  *state.Limit
	name string
	// key is nil for one never seen.
	key *state.Key
	// control is what feedback did to the key, nil for nothing.
	control *record.Control
	// held is everything at the version now, where the key has still to pass
	// versions or was never seen; else nil.
	held []lineage.Held
}

// line is one charge.
type line struct {
	charge *logv1.Charge
	// position is that in the request, for the names of fields.
	position int
	target   int
	// dimension is an index into the version now, -1 for an unlimited limit.
	dimension int
	class     int
	// after is the bucket, first as it is now and then as the grant leaves it.
	after bucket.Bucket
	took  int64
	// left is level minus debt before, or the slots that are free.
	left int64
	// slots says that the limit is one of concurrency: no bucket pays.
	slots bool
	// refused says that a limit that does not enforce would have refused the charge. It
	// takes nothing.
	refused bool
}

// asked is who asks for an acquire, and how.
type asked struct {
	now           bucket.Instant
	class, client string
	// untracked: slots can't be granted, since nobody could give them back.
	untracked bool
}

// think works out what the charges would do at now. An error is a *Refused. The
// lines are in the order of (limit, key, dimension), so that the order of the
// request can't matter (A21).
func (p *plan) think(m *Machine, now bucket.Instant, class string, charges []*logv1.Charge) error {
	p.reset()
	if n := len(charges); n < 1 || n > record.MaxCharges {
		return refuse.Field("charges", "%d: must be from 1 to %d", n, record.MaxCharges)
	}
	for i, c := range charges {
		if err := checkCharge(i, c); err != nil {
			return err
		}
		p.lines = append(p.lines, line{charge: c, position: i})
	}
	if len(p.lines) > 1 {
		slices.SortStableFunc(p.lines, func(a, b line) int { return compareCharges(a.charge, b.charge) })
	}
	for i := range p.lines {
		l := &p.lines[i]
		if i > 0 && compareCharges(p.lines[i-1].charge, l.charge) == 0 {
			return refuse.Field(refuse.At("charges", l.position, "dimension"), "%q of limit %q: is charged twice",
				l.charge.GetDimension(), l.charge.GetLimit())
		}
		if err := p.resolve(m, l, class); err != nil {
			return err
		}
	}
	for i := range p.lines {
		p.look(now, &p.lines[i])
	}
	p.countKeys(m, now)
	slices.SortStableFunc(p.denials, func(a, b *logv1.Denial) int {
		return cmp.Compare(patience(b), patience(a))
	})
	return nil
}

// patience orders denials: the longest wait first, never before all.
func patience(d *logv1.Denial) int64 {
	if d.GetRetryAfter() == 0 {
		return int64(lineage.Never)
	}
	return d.GetRetryAfter()
}

func compareCharges(a, b *logv1.Charge) int {
	if c := cmp.Compare(a.GetLimit(), b.GetLimit()); c != 0 {
		return c
	}
	if c := cmp.Compare(a.GetKey(), b.GetKey()); c != 0 {
		return c
	}
	return cmp.Compare(a.GetDimension(), b.GetDimension())
}

// resolve finds limit, key, dimension and class of a charge.
func (p *plan) resolve(m *Machine, l *line, class string) error {
	c := l.charge
	lim := m.state.FindLimit(c.GetLimit())
	if lim == nil || !lim.Live() {
		return refuse.For(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, refuse.At("charges", l.position, "limit"),
			"%q: there is no such limit", c.GetLimit())
	}
	if wrong := check.WrongKey(lim.Limit.GetKeyed(), c.GetKey()); wrong != "" {
		return refuse.Field(refuse.At("charges", l.position, "key"), "%s", wrong)
	}
	l.target = p.target(m, lim, c.GetKey())
	l.dimension = -1
	if lim.Limit.GetUnlimited() {
		return nil
	}
	l.dimension = lim.Now().Find(c.GetDimension())
	if l.dimension < 0 || !lim.Now().Dimensions[l.dimension].Live() {
		return refuse.Field(refuse.At("charges", l.position, "dimension"), "%q: limit %q does not count it",
			c.GetDimension(), c.GetLimit())
	}
	index, ok := lim.Now().Dimensions[l.dimension].Class(class)
	if !ok {
		return refuse.Field("class", "%q: limit %q has no such class", check.Clip(class), c.GetLimit())
	}
	l.class = index
	return nil
}

// target is the index of the key among the targets; lines of one key follow one
// another.
func (p *plan) target(m *Machine, lim *state.Limit, name string) int {
	last := len(p.targets) - 1
	if last >= 0 && p.targets[last].lim == lim && p.targets[last].name == name {
		return last
	}
	p.targets = append(p.targets, m.targetOf(lim, name, m.state.FindKey(lim.ID, name)))
	return last + 1
}

func (m *Machine) targetOf(lim *state.Limit, name string, key *state.Key) target {
	return target{lim: lim, name: name, key: key, control: m.state.ControlOf(key)}
}

// look works out one charge on a copy of its bucket.
func (p *plan) look(now bucket.Instant, l *line) {
	if l.dimension < 0 {
		return
	}
	t := &p.targets[l.target]
	d := &t.counts().Dimensions[l.dimension]
	l.after = t.bucket(l.dimension, now)
	l.left = l.after.Remaining(d.Shape)
	took, ok := l.after.Take(d.Shape, l.class, l.charge.GetAmount())
	reason, wait := logv1.Reason_REASON_UNSPECIFIED, int64(0)
	if ok {
		l.took = took
	} else {
		reason, wait = t.refusing(d.Shape, &l.after, l.class, l.charge.GetAmount())
	}
	if t.control != nil {
		reason, wait = feedback.Closing(t.control, now, reason, wait)
	}
	if reason != logv1.Reason_REASON_UNSPECIFIED {
		p.deny(l, reason, wait)
	}
}

// counts is what the limit counts for the key.
func (t *target) counts() *lineage.Variant { return t.lim.Now().For(t.name) }

// bucket is a copy of the bucket of a dimension, at the version now and at now.
func (t *target) bucket(dimension int, now bucket.Instant) bucket.Bucket {
	b := t.carried(dimension)
	state.Refill(&b, t.counts().Dimensions[dimension].Shape, t.control, now)
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
		return t.counts().Dimensions[dimension].Pristine.Clone()
	}
	if t.held == nil {
		t.held = t.lim.Pass(t.name, t.key.All(t.lim.At(t.key.Passed)), t.key.Passed)
	}
	return t.held[dimension].Bucket.Clone()
}

// refusing says why a bucket can't pay and how long it will not; 0 is never.
func (t *target) refusing(s *bucket.Shape, b *bucket.Bucket, class int, n int64) (logv1.Reason, int64) {
	switch {
	case s.IsZero():
		// Nothing will ever flow in.
		return logv1.Reason_REASON_ZERO_LIMIT, 0
	case n > s.EffectiveBurst(class):
		return logv1.Reason_REASON_EXCEEDS_BURST, 0
	}
	wait, never := t.retryAfter(s, b, class, n)
	switch {
	case never:
		// Beyond the end of authority time.
		return logv1.Reason_REASON_ZERO_LIMIT, 0
	case b.Debt(s, class) > 0:
		return logv1.Reason_REASON_DEBT, wait
	}
	return logv1.Reason_REASON_RATE, wait
}

// retryAfter is how long a bucket that has reached now needs, by the key's own time.
func (t *target) retryAfter(s *bucket.Shape, b *bucket.Bucket, class int, n int64) (wait int64, never bool) {
	if t.control == nil {
		plain, never := b.RetryAfter(s, class, n)
		return int64(plain), never
	}
	refill, never := b.Needs(s, class, n)
	if never {
		return 0, true
	}
	at, ok := t.control.Pace.Invert(b.Last(), refill)
	if !ok {
		return 0, true
	}
	return wholeMillis(int64(at - b.Last())), false
}

func (p *plan) deny(l *line, reason logv1.Reason, wait int64) {
	p.denials = append(p.denials, &logv1.Denial{
		Reason: reason, Limit: l.charge.GetLimit(), Key: l.charge.GetKey(),
		Dimension: l.charge.GetDimension(), RetryAfter: wait,
	})
}

// countKeys denies keys beyond the caps. A limit without keys has its one key in
// any case: a flood of keys must not shut it out.
func (p *plan) countKeys(m *Machine, now bucket.Instant) {
	fresh := 0
	var before *state.Limit
	ofLimit := 0
	for i := range p.targets {
		t := &p.targets[i]
		if t.key != nil || !t.lim.Limit.GetKeyed() || t.lim.Limit.GetUnlimited() {
			continue
		}
		if t.lim != before {
			before, ofLimit = t.lim, 0
		}
		fresh++
		ofLimit++
		var due bucket.Instant
		switch {
		case int64(t.lim.Keys()+ofLimit) > t.lim.Limit.GetMaxKeys():
			_, due = t.lim.FirstDue()
		case int64(m.state.Keys()+fresh) > m.state.Caps.GetKeys():
			_, due = m.state.FirstDueLimit()
		default:
			continue
		}
		p.denials = append(p.denials, &logv1.Denial{
			Reason: logv1.Reason_REASON_KEY_LIMIT, Limit: t.lim.Name, Key: t.name, RetryAfter: roomIn(now, due),
		})
	}
}

// unknownWait is the hint where nobody can say when there is room.
const unknownWait = int64(1e9)

// roomIn is how long to wait for room that there may be from due on.
func roomIn(now, due bucket.Instant) int64 {
	if due == lineage.Never {
		return unknownWait
	}
	return wholeMillis(int64(due - now))
}

// reset forgets the last plan, and what it pointed to.
func (p *plan) reset() {
	clear(p.lines)
	clear(p.targets)
	p.lines, p.targets, p.denials = p.lines[:0], p.targets[:0], nil
}
