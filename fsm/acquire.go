package fsm

import (
	"math"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/lease"
	"github.com/quorlease/quorlease/fsm/quota"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// applyAcquire grants every charge or none (G3): think on copies, then commit.
func (m *Machine) applyAcquire(op *logv1.Acquire) *logv1.Result {
	if err := checkNames(op); err != nil {
		return refuse.Result(err)
	}
	var id record.LeaseID
	if op.GetTrack() || len(op.GetLeaseId()) > 0 {
		var err error
		if id, err = lease.ID(op.GetLeaseId()); err != nil {
			return refuse.Result(err)
		}
		if l := m.leases.Find(id); l != nil {
			return m.repeatAcquire(l, op)
		}
	}
	if err := m.current(op); err != nil {
		return refuse.Result(err)
	}
	m.plan.ask(op, m.state.Now)
	if err := m.plan.think(m, op.GetCharges()); err != nil {
		return refuse.Result(err)
	}
	m.warnOf(&m.plan, op.GetClient())
	if op.GetTrack() {
		m.countLeases(&m.plan)
	}
	if len(m.plan.denials) > 0 {
		m.plan.promise(m)
		return m.plan.denied().wrapped()
	}
	m.plan.commit(m, op.GetClient())
	answer := m.plan.granted()
	answer.acquire.Tracked = op.GetTrack()
	answer.acquire.State = logv1.LeaseState_LEASE_STATE_OPEN
	// What the authority held it is no part of its life (T24).
	answer.acquire.Ttl = m.plan.ttl() + op.GetHeld()
	if op.GetTrack() {
		m.openLease(id, op, answer.acquire.GetTtl())
	}
	return answer.wrapped()
}

func acquireResult(answer *logv1.AcquireResult) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: answer}}
}

func checkNames(op *logv1.Acquire) error {
	if err := refuse.Text("owner", op.GetOwner(), 0, check.MaxText); err != nil {
		return err
	}
	if err := refuse.Text("client", op.GetClient(), 0, check.MaxText); err != nil {
		return err
	}
	if err := refuse.Text("class", op.GetClass(), 0, check.MaxText); err != nil {
		return err
	}
	if op.GetHeld() < 0 || op.GetHeld() > maxHeld {
		return refuse.Field("held", "%v: must be from 0s to %v", time.Duration(op.GetHeld()), time.Duration(maxHeld))
	}
	if len(op.GetSession()) == 0 {
		return nil
	}
	_, err := lease.Session(op.GetSession())
	return err
}

// current refuses charges that were worked out of attributes by limits that have
// changed since. A lease that is known is answered all the same.
func (m *Machine) current(op *logv1.Acquire) error {
	if op.Revision == nil || op.GetRevision() == m.state.Revision {
		return nil
	}
	return refuse.For(logv1.Refusal_CAUSE_REVISION_CHANGED, "revision",
		"%d: the revision is %d", op.GetRevision(), m.state.Revision)
}

// warnOf tells whoever watches what a limit would have refused, were it enforced.
func (m *Machine) warnOf(p *plan, client string) {
	for _, w := range p.warnings {
		if m.state.FindLimit(w.GetLimit()).Limit.GetMode() != logv1.Mode_MODE_WARN {
			continue
		}
		m.effects.Add(effect.Effect{
			Kind: effect.LimitWarning, Limit: w.GetLimit(), Key: w.GetKey(), Dimension: w.GetDimension(),
			Client: client, Value: w.GetReason().String(),
		})
	}
}

// repeatAcquire answers an acquire whose lease id is known: the same answer to
// the same content, with the ttl that remains (G4, A18), and a conflict
// otherwise; also where a release overtook it (T23).
func (m *Machine) repeatAcquire(l *state.Lease, op *logv1.Acquire) *logv1.Result {
	switch {
	case l.Unknown:
		return refuse.Result(lease.Conflict(l, "was released before it was acquired"))
	case l.Content != sumAcquire(op):
		return refuse.Result(lease.Conflict(l, "was used with other content"))
	}
	answer := &logv1.AcquireResult{
		Granted: true, Repeated: true, Tracked: true, State: l.State,
		Charges: listCharges(l), Remaining: m.remaining(l),
	}
	if l.Open() {
		until := l.SpendUntil
		if l.OnlySlots() && l.Sequence > 0 {
			// What remains of slots is what they were renewed for.
			until = l.SettleUntil
		}
		answer.Ttl = max(0, int64(until-m.state.Now))
		m.leases.Heard(op.GetSession(), l.Owner, op.GetConnection())
	}
	return acquireResult(answer)
}

// The tags keep the digests of requests apart. They are kept with leases: never
// change one. Package lease has 103.
const (
	tagAcquire = 101
	tagCharge  = 102
)

// sumAcquire is what two acquires of one lease id are compared by: everything
// but the order of the charges, and what the nodes on its way added, which is not
// the same on another way. Of charges that a node worked out of attributes it is the
// attributes that count.
func sumAcquire(op *logv1.Acquire) uint64 {
	sum := digest.New(tagAcquire)
	sum.Text(op.GetOwner())
	sum.Text(op.GetClient())
	sum.Text(op.GetClass())
	sum.Bool(op.GetTrack())
	if op.GetContent() != 0 {
		sum.Word(op.GetContent())
		return sum.Value()
	}
	charges := uint64(0)
	for _, c := range op.GetCharges() {
		one := digest.New(tagCharge)
		one.Text(c.GetLimit())
		one.Text(c.GetKey())
		one.Text(c.GetDimension())
		one.Int(c.GetAmount())
		charges += one.Value()
	}
	sum.Word(uint64(len(op.GetCharges())))
	sum.Word(charges)
	return sum.Value()
}

// countLeases denies a tracked lease beyond the cap. There is room again when a
// tombstone goes, or the lease that ends first has become one and goes.
func (m *Machine) countLeases(p *plan) {
	if int64(m.state.Leases()) < m.state.Caps.GetLeases() {
		return
	}
	denial := &logv1.Denial{Reason: logv1.Reason_REASON_LEASE_LIMIT, RetryAfter: m.leaseRoom()}
	place, _ := slices.BinarySearchFunc(p.denials, denial, func(a, b *logv1.Denial) int {
		if patience(a) >= patience(b) {
			return -1
		}
		return 1
	})
	p.denials = slices.Insert(p.denials, place, denial)
}

func (m *Machine) leaseRoom() int64 {
	_, at := m.state.FirstToForget()
	if l, ends := m.state.FirstToSettle(); l != nil {
		at = min(at, ends+state.TombstoneLife)
	}
	return roomIn(m.state.Now, at)
}

// commit writes what was thought, and nothing else does.
func (p *plan) commit(m *Machine, client string) {
	for i := range p.targets {
		t := &p.targets[i]
		switch {
		case !t.takes:
		case t.key == nil:
			t.key = m.state.AddKeyFor(t.lim, t.name, p.by.maker)
		default:
			t.key = m.state.ChangeKey(t.lim, t.key)
		}
	}
	for i := range p.lines {
		l := &p.lines[i]
		if l.dimension < 0 || l.refused || l.slots {
			continue
		}
		t := &p.targets[l.target]
		if l.escrow != nil {
			l.took = m.escrow.Pay(l.escrow, l.charge.GetAmount())
			continue
		}
		t.key.Held(int(l.dimension)).Bucket = l.after
		if t.lim.Limit.GetKind() == logv1.Kind_KIND_QUOTA {
			quota.Warn(&m.effects, t.lim, t.key, int(l.dimension), client)
		}
	}
}

// ttl is the smallest lease of the limits charged that enforce, or of all where none
// does: one that is only watched shortens nobody's lease.
func (p *plan) ttl() int64 {
	least, all := int64(math.MaxInt64), int64(math.MaxInt64)
	for i := range p.targets {
		limit := p.targets[i].lim.Limit
		all = min(all, limit.GetLease())
		if limit.GetMode() == logv1.Mode_MODE_ENFORCE {
			least = min(least, limit.GetLease())
		}
	}
	if least == math.MaxInt64 {
		return all
	}
	return least
}

// answer is the result of an acquire in one piece of memory, since there are
// more of them than of anything else. One charge is the rule.
type answer struct {
	result    logv1.Result
	kind      logv1.Result_Acquire
	acquire   logv1.AcquireResult
	charges   [1]*logv1.Charge
	remaining [1]*logv1.Remaining
	left      [1]logv1.Remaining
}

func (a *answer) wrapped() *logv1.Result {
	a.kind.Acquire = &a.acquire
	a.result.Kind = &a.kind
	return &a.result
}

func (p *plan) denied() *answer {
	a := &answer{}
	a.acquire.Denials, a.acquire.Warnings = p.denials, p.warnings
	p.remaining(a, false)
	return a
}

func (p *plan) granted() *answer {
	a := &answer{}
	a.acquire.Granted = true
	a.acquire.Warnings = p.warnings
	a.acquire.Charges = a.charges[:0]
	for i := range p.lines {
		c := p.lines[i].charge
		if c.GetKeep() != 0 || c.GetEscrow() != nil {
			c = &logv1.Charge{Limit: c.GetLimit(), Key: c.GetKey(), Dimension: c.GetDimension(), Amount: c.GetAmount()}
		}
		a.acquire.Charges = append(a.acquire.Charges, c)
		if p.lines[i].escrow != nil {
			a.acquire.Paid = append(a.acquire.Paid, uint32(p.lines[i].position))
		}
	}
	slices.Sort(a.acquire.Paid)
	p.remaining(a, true)
	return a
}

// remaining is level minus debt of every charge's bucket after the decision, or the
// slots that are free. A limit that is unlimited or off has none.
func (p *plan) remaining(a *answer, granted bool) {
	left := a.left[:]
	if len(p.lines) > 1 {
		left = make([]logv1.Remaining, len(p.lines))
	}
	list := a.remaining[:0]
	for i := range p.lines {
		l := &p.lines[i]
		if l.dimension < 0 {
			continue
		}
		r := &left[i]
		r.Limit, r.Key, r.Dimension = l.charge.GetLimit(), l.charge.GetKey(), l.charge.GetDimension()
		r.Tokens = l.left
		if granted && !l.refused && l.escrow == nil {
			// Whole tokens were taken of a whole number of units: exact.
			r.Tokens -= l.charge.GetAmount()
		}
		list = append(list, r)
	}
	a.acquire.Remaining = list
}
