package fsm

import (
	"math/bits"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/state"
)

// openLease makes the record of what the plan has committed.
func (m *Machine) openLease(id state.LeaseID, op *logv1.Acquire, ttl int64) {
	ends := m.state.Now + bucket.Instant(ttl)
	l := &state.Lease{
		ID: id, State: logv1.LeaseState_LEASE_STATE_OPEN, Owner: op.GetOwner(), Client: op.GetClient(),
		Content: sumAcquire(op), SpendUntil: ends, SettleUntil: ends,
		Charges: make([]state.Charge, len(m.plan.lines)),
	}
	for i := range m.plan.lines {
		line := &m.plan.lines[i]
		t := &m.plan.targets[line.target]
		c := &l.Charges[i]
		c.KeyName, c.Amount = t.name, line.charge.GetAmount()
		if line.dimension < 0 {
			c.Counted = &state.Counted{Limit: t.lim.Name, Dimension: line.charge.GetDimension()}
			continue
		}
		d := &t.lim.Now().Dimensions[line.dimension]
		c.KeyName = t.key.Name
		c.Counted = t.lim.Counted(d)
		c.Class = d.ClassName(line.class)
		c.Took, c.TookUnit = line.took, d.Shape.Unit()
		c.Refundable = min(c.Amount, max(0, d.Spec.GetMaxOpen()-t.key.Held(line.dimension).Open))
	}
	m.state.AddLease(l)
}

// listCharges is what was granted.
func listCharges(l *state.Lease) []*logv1.Charge {
	list := make([]*logv1.Charge, len(l.Charges))
	for i := range l.Charges {
		c := &l.Charges[i]
		list[i] = &logv1.Charge{Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension, Amount: c.Amount}
	}
	return list
}

// remaining is level minus debt of the buckets of a lease now.
func (m *Machine) remaining(l *state.Lease) []*logv1.Remaining {
	var list []*logv1.Remaining
	for i := range l.Charges {
		c := &l.Charges[i]
		lim, k := m.state.KeyOf(c)
		if lim == nil {
			continue
		}
		d := lim.Now().FindID(c.DimensionID)
		if d < 0 {
			continue
		}
		t := target{lim: lim, key: k}
		b, shape := t.bucket(d), lim.Now().Dimensions[d].Shape
		b.Advance(shape, m.state.Now)
		list = append(list, &logv1.Remaining{
			Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension, Tokens: b.Remaining(shape),
		})
	}
	return list
}

// ownLease finds a lease for somebody who may act on it: its owner, or the
// operator. That of another is as unknown as one that never was, and so is the
// mark of a release.
func (m *Machine) ownLease(raw []byte, owner string) (*state.Lease, error) {
	id, err := checkLeaseID(raw)
	if err == nil {
		err = checkText("owner", owner, 0, state.MaxText)
	}
	if err != nil {
		return nil, err
	}
	l := m.findLease(id)
	if l == nil || l.Unknown || !belongsTo(l, owner) {
		return nil, notFound(id)
	}
	return l, nil
}

func belongsTo(l *state.Lease, owner string) bool { return owner == "" || owner == l.Owner }

func notFound(id state.LeaseID) error {
	return refuse(logv1.Refusal_CAUSE_LEASE_NOT_FOUND, "lease_id", "%x: there is no such lease", id)
}

func conflict(l *state.Lease, what string) error {
	return refuse(logv1.Refusal_CAUSE_LEASE_CONFLICT, "lease_id", "%x: %s", l.ID, what)
}

// rescale makes units of which a token has from into units of which it has to,
// rounded down: the limit may have changed since the grant.
func rescale(units, from, to int64) int64 {
	if from == to || from <= 0 {
		return units
	}
	hi, lo := bits.Mul64(uint64(units), uint64(to))
	if hi >= uint64(from) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(from))
	return int64(min(q, 1<<63-1))
}
