package judge

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// hundredths is how many parts a share has.
const hundredths = 10_000

// guarantees checks G5: what a class has of its own is never denied to it, whatever
// the others do. The tokens that it certainly has are counted from below: filled
// at the guaranteed rate up to the sub-burst, spent first, and given back as far
// as they were taken. It is for classes that use no more than they asked for.
type guarantees struct {
	judge   *Judge
	buckets map[place]*guarantee
	// all are the buckets in a list, which is quicker to walk.
	all []*guarantee
	// leases are the charges of open leases of those classes.
	leases map[string][]taken
}

// guarantee is what one class has of one bucket, in ten thousandths of units.
type guarantee struct {
	class             string
	share, room, have int64
	since             int64
}

// taken is what a grant took of a guarantee.
type taken struct {
	from *guarantee
	had  int64
}

// Guarantee watches over a class of a limit, in its bucket of a key.
func (j *Judge) Guarantee(limit *logv1.Limit, key, class string) {
	for _, d := range limit.GetDimensions() {
		for _, c := range limit.GetClasses() {
			if c.GetName() != class {
				continue
			}
			room := d.GetBurst() * c.GetBurst() / hundredths * units * hundredths
			b := &guarantee{class: class, share: d.GetAmount() * c.GetShare(), room: room, have: room}
			j.guarantees.buckets[place{limit.GetName(), key, d.GetName()}] = b
			j.guarantees.all = append(j.guarantees.all, b)
		}
	}
}

func (g *guarantee) advance(now int64) {
	g.have = min(g.room, g.have+g.share*(now-g.since))
	g.since = now
}

func (g *guarantees) take(now int64, op *logv1.Operation, result *logv1.Result) {
	for _, b := range g.all {
		b.advance(now)
	}
	acquire, answer, lease := op.GetAcquire(), result.GetAcquire(), result.GetLease()
	switch {
	case answer.GetRepeated() || lease.GetRepeated():
	case answer.GetGranted():
		g.grant(acquire)
	case answer != nil:
		g.deny(acquire, answer)
	case lease != nil && lease.GetState() != logv1.LeaseState_LEASE_STATE_OPEN:
		g.end(leaseID(op), lease)
	}
}

func leaseID(op *logv1.Operation) string {
	if settle := op.GetSettle(); settle != nil {
		return string(settle.GetLeaseId())
	}
	return string(op.GetRelease().GetLeaseId())
}

// of is the guarantee that a charge of an acquire spends, or nil.
func (g *guarantees) of(acquire *logv1.Acquire, limit, key, dimension string) *guarantee {
	b := g.buckets[place{limit, key, dimension}]
	if b == nil || b.class != acquire.GetClass() {
		return nil
	}
	return b
}

func (g *guarantees) grant(acquire *logv1.Acquire) {
	var all []taken
	for _, c := range acquire.GetCharges() {
		b := g.of(acquire, c.GetLimit(), c.GetKey(), c.GetDimension())
		if b == nil {
			all = append(all, taken{})
			continue
		}
		part := min(b.have, c.GetAmount()*units*hundredths)
		b.have -= part
		all = append(all, taken{b, part})
	}
	if acquire.GetTrack() {
		g.leases[string(acquire.GetLeaseId())] = all
	}
}

func (g *guarantees) deny(acquire *logv1.Acquire, answer *logv1.AcquireResult) {
	for _, d := range answer.GetDenials() {
		if d.GetReason() != logv1.Reason_REASON_RATE && d.GetReason() != logv1.Reason_REASON_DEBT {
			continue
		}
		b := g.of(acquire, d.GetLimit(), d.GetKey(), d.GetDimension())
		if b == nil {
			continue
		}
		for _, c := range acquire.GetCharges() {
			if c.GetLimit() == d.GetLimit() && c.GetDimension() == d.GetDimension() && c.GetAmount()*units*hundredths <= b.have {
				g.judge.Complain("G5", "class %s has %d billionths of %d tokens of its own and is denied %v",
					b.class, b.have/hundredths, c.GetAmount(), acquire)
			}
		}
	}
}

// end gives back to guarantees what was taken from them. The settlements are in
// the order of the charges, as the simulation makes them.
func (g *guarantees) end(id string, lease *logv1.LeaseResult) {
	all := g.leases[id]
	delete(g.leases, id)
	for i, s := range lease.GetSettlements() {
		if i < len(all) && all[i].from != nil {
			b := all[i].from
			b.have = min(b.room, b.have+min(s.GetRefunded()*units*hundredths, all[i].had))
		}
	}
}
