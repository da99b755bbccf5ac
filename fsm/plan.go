package fsm

import (
	"cmp"
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/escrow"
	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// plan is an acquire thought through on copies: what every charge would do, and
// what stands against it. Nothing of the state has changed until commit (G3,
// G7). The parts are kept for the next plan.
type plan struct {
	by      asked
	lines   []line
	targets []target
	// denials are the longest wait first, never before all; warnings are the same of
	// limits that do not enforce.
	denials, warnings []*logv1.Denial
}

// line is one charge. There are many: its fields are no wider than they have to be.
type line struct {
	charge *logv1.Charge
	// after is the bucket, first as it is now and then as the grant leaves it.
	after bucket.Bucket
	took  int64
	// left is level minus debt before, or the slots that are free.
	left int64
	// position is that in the request, for the names of fields.
	position int32
	target   int32
	// dimension is an index into the version now, -1 where nothing is counted: the
	// limit is unlimited, or off.
	dimension int32
	class     int32
	// enforced says that the limit can refuse, slots that it is one of concurrency: no
	// bucket pays.
	enforced, slots bool
	// refused says that a limit that does not enforce would have refused the charge. It
	// takes nothing.
	refused bool
	// escrow pays for it, where a node has reserved some: the bucket gives nothing.
	escrow *ledger.Escrow
}

// asked is who asks, and how.
type asked struct {
	// now is the time to decide for, that of the machine or later.
	now   bucket.Instant
	class string
	// maker is whom keys are counted for that come into being.
	maker string
	// untracked: nobody could give slots back.
	untracked bool
}

// ask notes who asks.
func (p *plan) ask(op *logv1.Acquire, now bucket.Instant) {
	p.by.now, p.by.class, p.by.untracked = now, op.GetClass(), !op.GetTrack()
	p.by.maker = cmp.Or(op.GetClient(), op.GetOwner())
}

// think works out what the charges would do for who asks. An error is a *Refused. The
// lines are in the order of (limit, key, dimension), so that the order of the
// request can't matter (A21).
func (p *plan) think(m *Machine, charges []*logv1.Charge) error {
	p.reset()
	if n := len(charges); n < 1 || n > record.MaxCharges {
		return refuse.Field("charges", "%d: must be from 1 to %d", n, record.MaxCharges)
	}
	for i, c := range charges {
		if err := check.Charge(c); err != nil {
			return refuse.Wrong(refuse.At("charges", i, ""), err)
		}
		p.lines = append(p.lines, line{charge: c, position: int32(i)})
	}
	if len(p.lines) > 1 {
		slices.SortStableFunc(p.lines, func(a, b line) int { return compareCharges(a.charge, b.charge) })
	}
	for i := range p.lines {
		l := &p.lines[i]
		if i > 0 && compareCharges(p.lines[i-1].charge, l.charge) == 0 {
			return refuse.Field(refuse.At("charges", int(l.position), "dimension"), "%q of limit %q: is charged twice",
				l.charge.GetDimension(), l.charge.GetLimit())
		}
		if err := p.resolve(m, l); err != nil {
			return err
		}
	}
	for i := range p.lines {
		p.look(m, &p.lines[i])
	}
	p.countKeys(m)
	longestFirst(p.denials)
	longestFirst(p.warnings)
	return nil
}

func longestFirst(denials []*logv1.Denial) {
	if len(denials) < 2 {
		return
	}
	slices.SortStableFunc(denials, func(a, b *logv1.Denial) int {
		return cmp.Compare(patience(b), patience(a))
	})
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
func (p *plan) resolve(m *Machine, l *line) error {
	c := l.charge
	lim := m.state.FindLimit(c.GetLimit())
	if lim == nil || !lim.Live() {
		return refuse.For(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, refuse.At("charges", int(l.position), "limit"),
			"%q: there is no such limit", c.GetLimit())
	}
	if wrong := check.WrongKey(lim.Limit.GetKeyed(), c.GetKey()); wrong != "" {
		return refuse.Field(refuse.At("charges", int(l.position), "key"), "%s", wrong)
	}
	l.target = p.target(m, lim, c.GetKey())
	l.dimension = -1
	if lim.Limit.GetUnlimited() || lim.Limit.GetMode() == logv1.Mode_MODE_OFF {
		return nil
	}
	l.enforced = lim.Limit.GetMode() == logv1.Mode_MODE_ENFORCE
	counts := p.targets[l.target].counts
	dimension := counts.Find(c.GetDimension())
	if dimension < 0 || !counts.Dimensions[dimension].Live() {
		return refuse.Field(refuse.At("charges", int(l.position), "dimension"), "%q: limit %q does not count it",
			c.GetDimension(), c.GetLimit())
	}
	index, ok := counts.Dimensions[dimension].Class(p.by.class)
	if !ok && l.enforced {
		return refuse.Field("class", "%q: limit %q has no such class", check.Clip(p.by.class), c.GetLimit())
	}
	// A limit that does not enforce counts a class that it does not have as its first.
	l.dimension, l.class = int32(dimension), int32(index)
	l.slots = lim.Limit.GetKind() == logv1.Kind_KIND_CONCURRENCY
	if l.slots && l.enforced && p.by.untracked {
		return refuse.Field("track", "false: slots of limit %q come back with their lease", c.GetLimit())
	}
	return nil
}

// of is the bucket of a line that has one.
func (p *plan) of(l *line) escrow.Bucket {
	t := &p.targets[l.target]
	return escrow.Bucket{Limit: t.lim.ID, Dimension: t.counts.Dimensions[l.dimension].ID, Key: t.name}
}

// promise notes what a denial tells its caller to come back for: all that it would have
// taken, not only what was short.
func (p *plan) promise(m *Machine) {
	wait := p.denials[0].GetRetryAfter()
	for i := range p.lines {
		if l := &p.lines[i]; wait > 0 && l.dimension >= 0 {
			m.escrow.Promise(p.of(l), wait)
		}
	}
}

// reset forgets the last plan, and what it pointed to.
func (p *plan) reset() {
	clear(p.lines)
	clear(p.targets)
	p.lines, p.targets, p.denials, p.warnings = p.lines[:0], p.targets[:0], nil, nil
}
