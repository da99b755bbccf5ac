package fsm

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
)

// unnamed stands for a charge that a list of usages does not name.
const unnamed = -1

// reported is what a request says of the charges of a lease, by their index.
type reported [maxCharges]int64

// Renewals are for a millisecond to a day.
const (
	minRenewal = int64(time.Millisecond)
	maxRenewal = int64(24 * time.Hour)
)

// applySettle ends a lease with its real usage, or books progress.
func (m *Machine) applySettle(op *logv1.Settle) (*logv1.Result, error) {
	l, err := m.ownLease(op.GetLeaseId(), op.GetOwner())
	if err != nil {
		return nil, err
	}
	if l.unknown {
		return nil, conflict(l, "was released before it was acquired")
	}
	used, err := l.match(op.GetUsed())
	if err != nil {
		return nil, err
	}
	if op.GetProgress() {
		return m.progress(l, used)
	}
	for i := range l.charges {
		if used[i] == unnamed {
			used[i] = l.charges[i].amount
		}
	}
	content := sumUsage(l, used)
	switch l.state {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		if l.settled != content {
			return nil, conflict(l, "was settled with other usage")
		}
		return leaseResult(m.answer(l, true)), nil
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return nil, conflict(l, "was released")
	}
	l = m.touchLease(l)
	m.settle(l, used, content)
	return leaseResult(m.answer(l, false)), nil
}

// settle books the usage. Of a lease that has ended unreported nothing comes
// back, but an excess still counts.
func (m *Machine) settle(l *lease, used reported, content uint64) {
	for i := range l.charges {
		c := &l.charges[i]
		m.bookExcess(l, c, used[i])
		if !l.open() {
			c.used = used[i]
			continue
		}
		// Usage is cumulative: what progress has reported stays used.
		c.used = max(used[i], c.used)
		m.refund(c)
	}
	l.settled = content
	if l.open() {
		m.endLease(l, logv1.LeaseState_LEASE_STATE_SETTLED, m.clock.now)
		return
	}
	l.state = logv1.LeaseState_LEASE_STATE_SETTLED
	m.keepTombstone(l, m.clock.now)
}

// progress books what is above the amounts, and leaves the rest alone.
func (m *Machine) progress(l *lease, used reported) (*logv1.Result, error) {
	switch l.state {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		return nil, conflict(l, "was settled")
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return nil, conflict(l, "was released")
	}
	l = m.bookProgress(l, used)
	return leaseResult(m.answer(l, false)), nil
}

func (m *Machine) bookProgress(l *lease, used reported) *lease {
	for i := range l.charges {
		if used[i] <= l.charges[i].used {
			continue
		}
		l = m.touchLease(l)
		m.bookExcess(l, &l.charges[i], used[i])
		l.charges[i].used = used[i]
	}
	return l
}

// bookExcess takes usage above the amount from the bucket, or books it as debt.
// Usage is cumulative: what was booked before is not booked again.
func (m *Machine) bookExcess(l *lease, c *charge, used int64) {
	extra := used - c.amount - c.excess
	if extra <= 0 || c.limit == 0 {
		return
	}
	c.used = max(c.used, used)
	c.excess += extra
	beyond := extra
	if lim, k := m.excessKey(c); k != nil {
		d := lim.Now().FindID(c.dimension)
		if d >= 0 {
			dimension, b := &lim.Now().Dimensions[d], &k.held(d).Bucket
			b.Advance(dimension.Shape, m.clock.now)
			class, _ := dimension.Class(c.class)
			beyond = b.Excess(dimension.Shape, class, extra)
		}
	}
	if beyond == 0 {
		return
	}
	c.writtenOff += beyond
	m.effect(Effect{
		Kind: DebtWrittenOff, Limit: c.limitName, Key: c.key, Dimension: c.dimensionName, Client: l.client,
		Value: fmt.Sprint(beyond),
		Text:  fmt.Sprintf("usage of %d for a charge of %d: %d tokens are beyond the debt allowed", used, c.amount, beyond),
	})
}

// excessKey is the key to book an excess on. One that was dropped after the
// lease had ended comes back, where the cap lets it.
func (m *Machine) excessKey(c *charge) (*limit, *key) {
	lim, k := m.keyOf(c)
	switch {
	case lim == nil:
		return nil, nil
	case k != nil:
		return lim, m.current(lim, k)
	case int64(m.keys.Len()) >= m.caps.GetKeys() || !lim.live() || int64(lim.keys.Len()) >= lim.Limit.GetMaxKeys():
		return nil, nil
	}
	return lim, m.newKey(lim, c.key)
}

// refund gives back what was not used, as far as it can come back.
func (m *Machine) refund(c *charge) {
	back := min(c.amount-c.used, c.refundable)
	lim, k := m.keyOf(c)
	if back <= 0 || k == nil {
		return
	}
	k = m.current(lim, k)
	d := lim.Now().FindID(c.dimension)
	if d < 0 {
		return
	}
	dimension, b := &lim.Now().Dimensions[d], &k.held(d).Bucket
	b.Advance(dimension.Shape, m.clock.now)
	class, known := dimension.Class(c.class)
	took := rescale(c.took, c.tookUnit, dimension.Shape.Unit())
	if !known || len(dimension.Classes) > 0 && c.class == "" {
		// The class is gone: nothing goes back to a sub-bucket of another.
		took = 0
	}
	before := b.Remaining(dimension.Shape)
	b.Refund(dimension.Shape, class, back, took)
	// What the burst had no room for did not go back. In whole tokens the
	// difference may be one less than what came, never more than was owed.
	c.refunded = min(back, b.Remaining(dimension.Shape)-before)
}

// applyRelease gives a lease back unspent. Of an unknown id it leaves a
// tombstone, so that the acquire that it overtook grants nothing (T23).
func (m *Machine) applyRelease(op *logv1.Release) (*logv1.Result, error) {
	id, err := checkLeaseID(op.GetLeaseId())
	if err == nil {
		err = checkText("owner", op.GetOwner(), 0, maxText)
	}
	if err == nil {
		err = checkText("client", op.GetClient(), 0, maxText)
	}
	if err != nil {
		return nil, err
	}
	l := m.findLease(id)
	if l == nil {
		if int64(m.leases.Len()) >= m.caps.GetLeases() {
			return nil, refuse(logv1.Refusal_CAUSE_LEASE_LIMIT, "lease_id",
				"%x: is unknown, and there is no room to remember that: %d leases", id, m.caps.GetLeases())
		}
		m.rememberRelease(id, op)
		return nil, notFound(id)
	}
	if l.unknown || !l.belongsTo(op.GetOwner()) {
		return nil, notFound(id)
	}
	switch l.state {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		return nil, conflict(l, "was settled")
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return leaseResult(m.answer(l, true)), nil
	case logv1.LeaseState_LEASE_STATE_EXPIRED:
		// Nothing comes back after the end (T28).
		return leaseResult(m.answer(l, false)), nil
	}
	l = m.touchLease(l)
	for i := range l.charges {
		m.refund(&l.charges[i])
	}
	m.endLease(l, logv1.LeaseState_LEASE_STATE_RELEASED, m.clock.now)
	return leaseResult(m.answer(l, false)), nil
}

func (m *Machine) rememberRelease(id leaseID, op *logv1.Release) {
	l := &lease{
		id: id, state: logv1.LeaseState_LEASE_STATE_RELEASED, unknown: true,
		owner: op.GetOwner(), client: op.GetClient(),
	}
	m.leases.Insert(l)
	m.keepTombstone(l, m.clock.now)
	m.touchLease(l)
}

// applyRenew prolongs the time to settle, and never the time to spend (T12).
func (m *Machine) applyRenew(op *logv1.Renew) (*logv1.Result, error) {
	switch {
	case op.GetTtl() < minRenewal || op.GetTtl() > maxRenewal:
		return nil, badField("ttl", "%v: must be from %v to %v",
			time.Duration(op.GetTtl()), time.Duration(minRenewal), time.Duration(maxRenewal))
	case op.GetSequence() == 0:
		return nil, badField("sequence", "0: must be positive")
	}
	l, err := m.ownLease(op.GetLeaseId(), op.GetOwner())
	if err != nil {
		return nil, err
	}
	if l.unknown {
		return nil, conflict(l, "was released before it was acquired")
	}
	used, err := l.match(op.GetUsed())
	if err != nil {
		return nil, err
	}
	content := sumRenewal(l, op, used)
	switch {
	case op.GetSequence() == l.sequence && content == l.renewed:
		return leaseResult(m.answer(l, true)), nil
	case op.GetSequence() == l.sequence:
		return nil, conflict(l, fmt.Sprintf("renewal %d had other content", l.sequence))
	case !l.open():
		return nil, conflict(l, "has ended")
	case op.GetSequence() < l.sequence:
		return nil, conflict(l, fmt.Sprintf("renewal %d came after renewal %d", op.GetSequence(), l.sequence))
	}
	l = m.touchLease(m.bookProgress(l, used))
	l.sequence, l.renewed = op.GetSequence(), content
	l.settleUntil = max(l.settleUntil, m.clock.now+bucket.Instant(op.GetTtl()))
	m.openLeases.Set(l, int64(l.settleUntil))
	return leaseResult(m.answer(l, false)), nil
}

func sumRenewal(l *lease, op *logv1.Renew, used reported) uint64 {
	sum := digest.New(tagUsage)
	sum.Int(op.GetTtl())
	sum.Word(sumUsage(l, used))
	return sum.Value()
}

func sumUsage(l *lease, used reported) uint64 {
	sum := digest.New(tagUsage)
	for i := range l.charges {
		sum.Int(used[i])
	}
	return sum.Value()
}

// answer is what a lease says of itself.
func (m *Machine) answer(l *lease, repeated bool) *logv1.LeaseResult {
	answer := &logv1.LeaseResult{
		Repeated: repeated, State: l.state, Settlements: make([]*logv1.Settlement, len(l.charges)),
	}
	if l.open() {
		answer.Ttl = max(0, int64(l.settleUntil-m.clock.now))
	}
	for i := range l.charges {
		c := &l.charges[i]
		answer.Settlements[i] = &logv1.Settlement{
			Limit: c.limitName, Key: c.key, Dimension: c.dimensionName, Amount: c.amount,
			Used: c.used, Refunded: c.refunded, Excess: c.excess, WrittenOff: c.writtenOff,
		}
	}
	return answer
}

// ownLease finds a lease for somebody who may act on it. That of another is as
// unknown as one that never was.
func (m *Machine) ownLease(raw []byte, owner string) (*lease, error) {
	id, err := checkLeaseID(raw)
	if err == nil {
		err = checkText("owner", owner, 0, maxText)
	}
	if err != nil {
		return nil, err
	}
	l := m.findLease(id)
	if l == nil || !l.belongsTo(owner) {
		return nil, notFound(id)
	}
	return l, nil
}

// belongsTo says who may act on a lease: its owner, and the operator.
func (l *lease) belongsTo(owner string) bool { return owner == "" || owner == l.owner }

func notFound(id leaseID) error {
	return refuse(logv1.Refusal_CAUSE_LEASE_NOT_FOUND, "lease_id", "%x: there is no such lease", id)
}

func conflict(l *lease, what string) error {
	return refuse(logv1.Refusal_CAUSE_LEASE_CONFLICT, "lease_id", "%x: %s", l.id, what)
}
