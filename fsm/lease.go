package fsm

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lease"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/state"
)

// openLease makes the record of what the plan has committed.
func (m *Machine) openLease(id record.LeaseID, op *logv1.Acquire, ttl int64) {
	ends := m.state.Now + bucket.Instant(ttl)
	l := record.Lease{
		ID: id, State: logv1.LeaseState_LEASE_STATE_OPEN, Owner: op.GetOwner(), Client: op.GetClient(),
		Content: sumAcquire(op), SpendUntil: ends, SettleUntil: ends,
		Charges: make([]record.Charge, len(m.plan.lines)),
	}
	// It was checked with the names.
	session, _ := lease.Session(op.GetSession())
	tied := record.SessionID{}
	for i := range m.plan.lines {
		line := &m.plan.lines[i]
		t := &m.plan.targets[line.target]
		c := &l.Charges[i]
		c.KeyName, c.Amount, c.Refused = t.name, line.charge.GetAmount(), line.refused
		if line.dimension < 0 || line.refused {
			// Nothing was taken, so nothing comes back, and no excess is booked.
			c.Counted = &record.Counted{Limit: t.lim.Name, Dimension: line.charge.GetDimension()}
			continue
		}
		d := &t.counts.Dimensions[line.dimension]
		c.KeyName = t.key.Name
		c.Counted = t.lim.Counted(d)
		c.Class = d.ClassName(int(line.class))
		if line.slots {
			c.Refundable, tied = c.Amount, session
			// A slot is held for as long as its own limit says: tokens that are charged
			// beside it must be spent sooner, which is no reason to give it to another.
			hold := bucket.Instant(t.lim.Limit.GetLease() + op.GetHeld())
			l.SettleUntil = max(l.SettleUntil, m.state.Now+hold)
			continue
		}
		c.Took, c.TookUnit = line.took, d.Shape.Unit()
		c.Refundable = c.Amount
		if d.Kind == logv1.Kind_KIND_RATE {
			// Of a quota nothing is refilled while it is held: all of it can come back,
			// until its window is over.
			c.Refundable = min(c.Amount, max(0, d.Spec.GetMaxOpen()-t.key.Held(int(line.dimension)).Open))
		}
	}
	if tied != (record.SessionID{}) && m.leases.Join(record.SessionKey{ID: tied, Owner: l.Owner}, op.GetConnection()) {
		l.Session = tied
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

// remaining is level minus debt of the buckets of a lease now, or the slots that are
// free.
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
		t := m.targetOf(lim, c.KeyName, k)
		b, shape := t.bucket(d, m.state.Now), t.counts.Dimensions[d].Shape
		left := b.Remaining(shape)
		if c.Slots() {
			left = max(0, shape.Burst()-lim.InUse(c.KeyName, m.state.Now))
		}
		list = append(list, &logv1.Remaining{
			Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension, Tokens: left,
		})
	}
	return list
}
