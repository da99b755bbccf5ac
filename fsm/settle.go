package fsm

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/state"
)

// unnamed stands for a charge that a list of usages does not name.
const unnamed = -1

// reported is what a request says of the charges of a lease, by their index.
type reported [state.MaxCharges]int64

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
	used, err := match(l, op.GetUsed())
	if err != nil {
		return nil, err
	}
	if op.GetProgress() {
		return m.progress(l, used)
	}
	for i := range l.Charges {
		if used[i] == unnamed {
			used[i] = l.Charges[i].Amount
		}
	}
	content := sumUsage(l, used)
	switch l.State {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		if l.Settled != content {
			return nil, conflict(l, "was settled with other usage")
		}
		return leaseResult(m.answer(l, true)), nil
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return nil, conflict(l, "was released")
	case logv1.LeaseState_LEASE_STATE_UNSPECIFIED, logv1.LeaseState_LEASE_STATE_OPEN, logv1.LeaseState_LEASE_STATE_EXPIRED:
	}
	l = m.state.TouchLease(l)
	m.settle(l, used, content)
	return leaseResult(m.answer(l, false)), nil
}

// settle books the usage. Of a lease that has ended unreported nothing comes
// back, but an excess still counts.
func (m *Machine) settle(l *state.Lease, used reported, content uint64) {
	for i := range l.Charges {
		c := &l.Charges[i]
		m.bookExcess(l, c, used[i])
		if !l.Open() {
			c.Used = used[i]
			continue
		}
		// Usage is cumulative: what progress has reported stays used.
		c.Used = max(used[i], c.Used)
		m.refund(c)
	}
	l.Settled = content
	m.state.EndLease(l, logv1.LeaseState_LEASE_STATE_SETTLED, m.state.Now)
}

// progress books what is above the amounts, and leaves the rest alone.
func (m *Machine) progress(l *state.Lease, used reported) (*logv1.Result, error) {
	switch l.State {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		return nil, conflict(l, "was settled")
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return nil, conflict(l, "was released")
	case logv1.LeaseState_LEASE_STATE_UNSPECIFIED, logv1.LeaseState_LEASE_STATE_OPEN, logv1.LeaseState_LEASE_STATE_EXPIRED:
	}
	l = m.bookProgress(l, used)
	return leaseResult(m.answer(l, false)), nil
}

func (m *Machine) bookProgress(l *state.Lease, used reported) *state.Lease {
	for i := range l.Charges {
		if used[i] <= l.Charges[i].Used {
			continue
		}
		l = m.state.TouchLease(l)
		m.bookExcess(l, &l.Charges[i], used[i])
		l.Charges[i].Used = used[i]
	}
	return l
}

// bookExcess takes usage above the amount from the bucket, or books it as debt.
// Usage is cumulative: what was booked before is not booked again.
func (m *Machine) bookExcess(l *state.Lease, c *state.Charge, used int64) {
	extra := used - c.Amount - c.Excess
	if extra <= 0 || c.LimitID == 0 {
		return
	}
	c.Used = max(c.Used, used)
	c.Excess += extra
	beyond := extra
	if lim, k := m.excessKey(c); k != nil {
		d := lim.Now().FindID(c.DimensionID)
		if d >= 0 {
			dimension, b := &lim.Now().Dimensions[d], &k.Held(d).Bucket
			b.Advance(dimension.Shape, m.state.Now)
			class, _ := dimension.Class(c.Class)
			beyond = b.Excess(dimension.Shape, class, extra)
		}
	}
	if beyond == 0 {
		return
	}
	c.WrittenOff += beyond
	m.effect(Effect{
		Kind: DebtWrittenOff, Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension, Client: l.Client,
		Value: fmt.Sprint(beyond),
		Text:  fmt.Sprintf("usage of %d for a charge of %d: %d tokens are beyond the debt allowed", used, c.Amount, beyond),
	})
}

// excessKey is the key to book an excess on. One that was dropped after the
// lease had ended comes back, where the cap lets it.
func (m *Machine) excessKey(c *state.Charge) (*state.Limit, *state.Key) {
	lim, k := m.state.KeyOf(c)
	switch {
	case lim == nil:
		return nil, nil
	case k != nil:
		return lim, m.state.ChangeKey(lim, k)
	case int64(m.state.Keys()) >= m.state.Caps.GetKeys() || !lim.Live() || int64(lim.Keys()) >= lim.Limit.GetMaxKeys():
		return nil, nil
	}
	return lim, m.state.AddKey(lim, c.KeyName)
}

// refund gives back what was not used, as far as it can come back.
func (m *Machine) refund(c *state.Charge) {
	back := min(c.Amount-c.Used, c.Refundable)
	lim, k := m.state.KeyOf(c)
	if back <= 0 || k == nil {
		return
	}
	k = m.state.ChangeKey(lim, k)
	d := lim.Now().FindID(c.DimensionID)
	if d < 0 {
		return
	}
	dimension, b := &lim.Now().Dimensions[d], &k.Held(d).Bucket
	b.Advance(dimension.Shape, m.state.Now)
	class, known := dimension.Class(c.Class)
	took := rescale(c.Took, c.TookUnit, dimension.Shape.Unit())
	if !known || len(dimension.Classes) > 0 && c.Class == "" {
		// The class is gone: nothing goes back to a sub-bucket of another.
		took = 0
	}
	before := b.Remaining(dimension.Shape)
	b.Refund(dimension.Shape, class, back, took)
	// What the burst had no room for did not go back. In whole tokens the
	// difference may be one less than what came, never more than was owed.
	c.Refunded = max(0, min(back, b.Remaining(dimension.Shape)-before))
}

// applyRelease gives a lease back unspent. Of an unknown id it leaves a
// tombstone, so that the acquire that it overtook grants nothing (T23).
func (m *Machine) applyRelease(op *logv1.Release) (*logv1.Result, error) {
	id, err := checkLeaseID(op.GetLeaseId())
	if err == nil {
		err = checkText("owner", op.GetOwner(), 0, state.MaxText)
	}
	if err == nil {
		err = checkText("client", op.GetClient(), 0, state.MaxText)
	}
	if err != nil {
		return nil, err
	}
	l := m.findLease(id)
	if l == nil {
		if int64(m.state.Leases()) >= m.state.Caps.GetLeases() {
			return nil, refuse(logv1.Refusal_CAUSE_LEASE_LIMIT, "lease_id",
				"%x: is unknown, and there is no room to remember that: %d leases", id, m.state.Caps.GetLeases())
		}
		m.rememberRelease(id, op)
		return nil, notFound(id)
	}
	if l.Unknown || !belongsTo(l, op.GetOwner()) {
		return nil, notFound(id)
	}
	switch l.State {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		return nil, conflict(l, "was settled")
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return leaseResult(m.answer(l, true)), nil
	case logv1.LeaseState_LEASE_STATE_EXPIRED:
		// Nothing comes back after the end (T28).
		return leaseResult(m.answer(l, false)), nil
	case logv1.LeaseState_LEASE_STATE_UNSPECIFIED, logv1.LeaseState_LEASE_STATE_OPEN:
	}
	l = m.state.TouchLease(l)
	for i := range l.Charges {
		m.refund(&l.Charges[i])
	}
	m.state.EndLease(l, logv1.LeaseState_LEASE_STATE_RELEASED, m.state.Now)
	return leaseResult(m.answer(l, false)), nil
}

func (m *Machine) rememberRelease(id state.LeaseID, op *logv1.Release) {
	m.state.AddLease(&state.Lease{
		ID: id, State: logv1.LeaseState_LEASE_STATE_RELEASED, Unknown: true,
		Owner: op.GetOwner(), Client: op.GetClient(), ForgetAt: m.state.Now + state.TombstoneLife,
	})
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
	used, err := match(l, op.GetUsed())
	if err != nil {
		return nil, err
	}
	content := sumRenewal(l, op, used)
	switch {
	case op.GetSequence() == l.Sequence && content == l.Renewed:
		return leaseResult(m.answer(l, true)), nil
	case op.GetSequence() == l.Sequence:
		return nil, conflict(l, fmt.Sprintf("renewal %d had other content", l.Sequence))
	case !l.Open():
		return nil, conflict(l, "has ended")
	case op.GetSequence() < l.Sequence:
		return nil, conflict(l, fmt.Sprintf("renewal %d came after renewal %d", op.GetSequence(), l.Sequence))
	}
	l = m.state.TouchLease(m.bookProgress(l, used))
	l.Sequence, l.Renewed = op.GetSequence(), content
	m.state.RenewLease(l, max(l.SettleUntil, m.state.Now+bucket.Instant(op.GetTtl())))
	return leaseResult(m.answer(l, false)), nil
}

func sumRenewal(l *state.Lease, op *logv1.Renew, used reported) uint64 {
	sum := digest.New(tagUsage)
	sum.Int(op.GetTtl())
	sum.Word(sumUsage(l, used))
	return sum.Value()
}

func sumUsage(l *state.Lease, used reported) uint64 {
	sum := digest.New(tagUsage)
	for i := range l.Charges {
		sum.Int(used[i])
	}
	return sum.Value()
}

// answer is what a lease says of itself.
func (m *Machine) answer(l *state.Lease, repeated bool) *logv1.LeaseResult {
	answer := &logv1.LeaseResult{
		Repeated: repeated, State: l.State, Settlements: make([]*logv1.Settlement, len(l.Charges)),
	}
	if l.Open() {
		answer.Ttl = max(0, int64(l.SettleUntil-m.state.Now))
	}
	for i := range l.Charges {
		c := &l.Charges[i]
		answer.Settlements[i] = &logv1.Settlement{
			Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension, Amount: c.Amount,
			Used: c.Used, Refunded: c.Refunded, Excess: c.Excess, WrittenOff: c.WrittenOff,
		}
	}
	return answer
}
