package fsm

import (
	"bytes"
	"math/bits"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/store"
)

// tombstoneLife is how long a lease is remembered after its end, so that
// repeated requests get the same answer (G4).
const tombstoneLife = bucket.Instant(5 * time.Minute)

// lease is the record of a tracked acquire, or of a release that came before
// its acquire. After its end it is a tombstone.
type lease struct {
	id      leaseID
	version uint32 // of the table: when it was last copied
	place   int32
	state   logv1.LeaseState
	// unknown: a release of an id that was never acquired.
	unknown bool
	touched bool

	owner, client string
	// content is the digest of the acquire, settled that of the settle, renewed
	// that of the last renewal, whose sequence is kept beside it.
	content, settled, renewed uint64
	sequence                  uint64
	// spendUntil is fixed by the grant: a renewal moves settleUntil only (T12).
	spendUntil, settleUntil bucket.Instant
	// forgetAt is set at the end.
	forgetAt bucket.Instant
	// charges are in the order of (limit, key, dimension).
	charges []charge
	digest  uint64
}

// charge is one charge of a lease, and what became of it.
type charge struct {
	*counted
	key    string
	amount int64
	// class is the name of the class that paid; took is what came from its own
	// sub-bucket, in units of which a token has tookUnit.
	class          string
	took, tookUnit int64
	// refundable is what may come back at most (T40).
	refundable int64
	// used is cumulative, at first by progress.
	used int64
	// What settling did.
	refunded, excess, writtenOff int64
}

// counted names what was charged. Leases share it, and keep it when the limit is
// gone. Its numbers are 0 for an unlimited limit, which has no bucket.
type counted struct {
	limit, dimension         uint32
	limitName, dimensionName string
}

// ID, Generation and Clone are for the table, Place and Before for the queues.
func (l *lease) ID() leaseID         { return l.id }
func (l *lease) Generation() *uint32 { return &l.version }
func (l *lease) Place() *int32       { return &l.place }
func (l *lease) Before(o *lease) bool {
	return bytes.Compare(l.id[:], o.id[:]) < 0
}

func (l *lease) Clone() *lease {
	c := *l
	c.charges = append([]charge(nil), l.charges...)
	return &c
}

func (l *lease) open() bool { return l.state == logv1.LeaseState_LEASE_STATE_OPEN }

func (l *lease) sum() uint64 {
	sum := digest.New(tagLease)
	sum.Text(string(l.id[:]))
	sum.Word(uint64(l.state))
	sum.Bool(l.unknown)
	sum.Text(l.owner)
	sum.Text(l.client)
	sum.Word(l.content)
	sum.Word(l.settled)
	sum.Word(l.renewed)
	sum.Word(l.sequence)
	sum.Int(int64(l.spendUntil))
	sum.Int(int64(l.settleUntil))
	sum.Int(int64(l.forgetAt))
	for i := range l.charges {
		c := &l.charges[i]
		sum.Word(uint64(c.limit)<<32 | uint64(c.dimension))
		sum.Text(c.limitName)
		sum.Text(c.dimensionName)
		sum.Text(c.key)
		sum.Text(c.class)
		sum.Int(c.amount)
		sum.Int(c.took)
		sum.Int(c.tookUnit)
		sum.Int(c.refundable)
		sum.Int(c.used)
		sum.Int(c.refunded)
		sum.Int(c.excess)
		sum.Int(c.writtenOff)
	}
	return sum.Value()
}

// list is what was granted.
func (l *lease) list() []*logv1.Charge {
	list := make([]*logv1.Charge, len(l.charges))
	for i := range l.charges {
		c := &l.charges[i]
		list[i] = &logv1.Charge{Limit: c.limitName, Key: c.key, Dimension: c.dimensionName, Amount: c.amount}
	}
	return list
}

// openLease makes the record of what the plan has committed.
func (m *Machine) openLease(id leaseID, op *logv1.Acquire, ttl int64) {
	ends := m.clock.now + bucket.Instant(ttl)
	l := &lease{
		id: id, state: logv1.LeaseState_LEASE_STATE_OPEN, owner: op.GetOwner(), client: op.GetClient(),
		content: sumAcquire(op), spendUntil: ends, settleUntil: ends, charges: make([]charge, len(m.plan.lines)),
	}
	for i := range m.plan.lines {
		line := &m.plan.lines[i]
		t := &m.plan.targets[line.target]
		c := &l.charges[i]
		c.key, c.amount = t.name, line.charge.GetAmount()
		if line.dimension < 0 {
			c.counted = &counted{limitName: t.lim.Name, dimensionName: line.charge.GetDimension()}
			continue
		}
		d := &t.lim.Now().Dimensions[line.dimension]
		c.key = t.key.name
		c.counted = t.lim.counted(d)
		c.class = d.ClassName(line.class)
		c.took, c.tookUnit = line.took, d.Shape.Unit()
		c.refundable = min(c.amount, max(0, d.Spec.GetMaxOpen()-t.key.held(line.dimension).Open))
	}
	m.holdOpen(l, 1)
	m.leases.Insert(l)
	m.openLeases.Set(l, int64(l.settleUntil))
	m.touchLease(l)
}

// counted is the shared name of a dimension.
func (l *limit) counted(d *lineage.Dimension) *counted {
	for _, c := range l.names {
		if c.dimension == d.ID {
			return c
		}
	}
	c := &counted{limit: l.ID, dimension: d.ID, limitName: l.Name, dimensionName: d.Spec.GetName()}
	l.names = append(l.names, c)
	return c
}

// touchLease returns the lease to change. Pointers to the lease of before are
// void.
func (m *Machine) touchLease(l *lease) *lease {
	if l.touched {
		return l
	}
	own := m.leases.Own(l)
	if own != l {
		m.queueOf(own).Renew(own)
	}
	own.touched = true
	m.sum -= own.digest
	m.touched.leases = append(m.touched.leases, own)
	return own
}

// findLease looks a lease up as it is now: one whose time is over has ended,
// whether or not the sweep has come to it (T28).
func (m *Machine) findLease(id leaseID) *lease {
	l := m.leases.Find(id)
	if l != nil && l.open() && m.expired(l.settleUntil) {
		l = m.expire(l)
	}
	if l != nil && !l.open() && m.expired(l.forgetAt) {
		m.forgetLease(l)
		return nil
	}
	return l
}

// expire ends a lease that nobody settled: it is charged in full.
func (m *Machine) expire(l *lease) *lease {
	l = m.touchLease(l)
	for i := range l.charges {
		l.charges[i].used = max(l.charges[i].used, l.charges[i].amount)
	}
	m.endLease(l, logv1.LeaseState_LEASE_STATE_EXPIRED, l.settleUntil)
	m.effect(Effect{Kind: LeaseEnded, Client: l.client, Value: "expired", Limit: l.charges[0].limitName,
		Key: l.charges[0].key, Dimension: l.charges[0].dimensionName})
	return l
}

// endLease makes a tombstone of an open lease: what could have come back no
// longer can.
func (m *Machine) endLease(l *lease, state logv1.LeaseState, now bucket.Instant) {
	m.holdOpen(l, -1)
	m.openLeases.Remove(l)
	l.state = state
	m.keepTombstone(l, now)
}

// holdOpen counts an open lease with its keys, or, by -1, no longer: what of it
// can come back, and that its keys are not dropped. The lines of one key follow
// one another.
func (m *Machine) holdOpen(l *lease, by int64) {
	for i := range l.charges {
		c := &l.charges[i]
		lim, k := m.keyOf(c)
		if k == nil {
			continue
		}
		k = m.touchKey(lim, k)
		if d := lim.At(k.passed).FindID(c.dimension); d >= 0 {
			k.held(d).Open += by * c.refundable
		}
		if i == 0 || l.charges[i-1].limit != c.limit || l.charges[i-1].key != c.key {
			k.leases += uint32(by)
		}
	}
}

func (m *Machine) keepTombstone(l *lease, now bucket.Instant) {
	l.forgetAt = now + tombstoneLife
	m.deadLeases.Set(l, int64(l.forgetAt))
}

func (m *Machine) forgetLease(l *lease) {
	if !l.touched {
		m.sum -= l.digest
	}
	l.touched = false
	m.queueOf(l).Remove(l)
	m.leases.Remove(l)
}

// keyOf is the bucket's key of a charge, where there still is one.
func (m *Machine) keyOf(c *charge) (*limit, *key) {
	lim := m.limitsByID[c.limit]
	if lim == nil {
		return nil, nil
	}
	return lim, m.keys.Find(keyID{c.limit, c.key})
}

// remaining is level minus debt of the buckets of a lease now.
func (m *Machine) remaining(l *lease) []*logv1.Remaining {
	var list []*logv1.Remaining
	for i := range l.charges {
		c := &l.charges[i]
		lim := m.limitsByID[c.limit]
		if lim == nil {
			continue
		}
		d := lim.Now().FindID(c.dimension)
		if d < 0 {
			continue
		}
		t := target{lim: lim, key: m.keys.Find(keyID{c.limit, c.key})}
		b, shape := t.bucket(d), lim.Now().Dimensions[d].Shape
		b.Advance(shape, m.clock.now)
		list = append(list, &logv1.Remaining{
			Limit: c.limitName, Key: c.key, Dimension: c.dimensionName, Tokens: b.Remaining(shape),
		})
	}
	return list
}

// rescale makes units of which a token has from into units of which it has to,
// rounded down: the limit may have changed since the grant.
func rescale(units, from, to int64) int64 {
	if from == to || from <= 0 {
		return units
	}
	hi, lo := bits.Mul64(uint64(units), uint64(to))
	if hi >= uint64(from) {
		return bucket.MaxTokens
	}
	q, _ := bits.Div64(hi, lo, uint64(from))
	return int64(min(q, 1<<63-1))
}

// queueOf is the queue that a lease waits in.
func (m *Machine) queueOf(l *lease) *store.Queue[*lease] {
	if l.open() {
		return &m.openLeases
	}
	return &m.deadLeases
}
