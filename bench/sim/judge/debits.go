package judge

import (
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// units are those of a token: what a rate of one a second gives in a nanosecond.
const units = int64(time.Second)

// debits checks G1: for every bucket and every interval of authority time,
// grants less what came back are at most the burst at its beginning and what
// the rates gave in it.
type debits struct {
	judge *Judge
	now   int64
	// limits are those that count something.
	limits  []*logv1.Limit
	buckets map[place]*debit
	// unseen is the bucket that nobody has asked for yet, by limit and dimension: it
	// was full when the limit came and passes every change (T14).
	unseen map[place]*debit
}

// debit is one bucket. With net(t) the grants so far less what came back, and
// gave(t) what the rates have given, the bound for the interval from s to e is
//
//	net(e) - gave(e) <= net(s) - gave(s) + burst(s)
//
// so that the least of the right sides is all that has to be kept.
type debit struct {
	since       int64
	rate, burst int64
	net, gave   int64
	least       int64
	begun       bool
}

func (d *debits) take(op *logv1.Operation, result *logv1.Result) {
	switch kind := result.GetKind().(type) {
	case *logv1.Result_Limits:
		for _, c := range kind.Limits.GetChanges() {
			if c.GetLimitAfter() != nil && !c.GetLimitAfter().GetUnlimited() &&
				c.GetLimitAfter().GetKind() == logv1.Kind_KIND_RATE {
				d.change(c.GetLimitAfter())
			}
		}
	case *logv1.Result_Acquire:
		if kind.Acquire.GetGranted() && !kind.Acquire.GetRepeated() {
			d.acquire(op, kind.Acquire)
		}
	case *logv1.Result_Lease:
		if !kind.Lease.GetRepeated() && kind.Lease.GetState() != logv1.LeaseState_LEASE_STATE_OPEN {
			for _, s := range kind.Lease.GetSettlements() {
				d.bucket(place{s.GetLimit(), s.GetKey(), s.GetDimension()}).net -= s.GetRefunded() * units
			}
		}
	}
}

// acquire takes a grant. What escrow paid for was taken when a node was given it.
func (d *debits) acquire(op *logv1.Operation, granted *logv1.AcquireResult) {
	for i, c := range granted.GetCharges() {
		if !slices.Contains(granted.GetPaid(), uint32(i)) {
			d.grant(op, place{c.GetLimit(), c.GetKey(), c.GetDimension()}, c.GetAmount())
		}
	}
}

func (d *debits) change(after *logv1.Limit) {
	kept := d.limits[:0]
	for _, l := range d.limits {
		if l.GetName() != after.GetName() {
			kept = append(kept, l)
		}
	}
	d.limits = append(kept, after)
	for _, dimension := range after.GetDimensions() {
		p := place{limit: after.GetName(), dimension: dimension.GetName()}
		b := d.unseen[p]
		if b == nil {
			b = &debit{since: d.now}
			d.unseen[p] = b
			d.configure(p, b)
		}
		d.reconfigure(p, b)
	}
	// Each is its own: the order does not matter.
	for p, b := range d.buckets {
		if p.limit == after.GetName() {
			d.reconfigure(p, b)
		}
	}
}

// reconfigure takes other numbers from now on. Whoever looks at the interval that
// begins here finds no more than either burst.
func (d *debits) reconfigure(p place, b *debit) {
	b.advance(d.now)
	b.begin()
	d.configure(p, b)
	b.begin()
}

// configure takes the numbers of the limit now. Rates are per second.
func (d *debits) configure(p place, b *debit) {
	for _, l := range d.limits {
		for _, dimension := range l.GetDimensions() {
			if l.GetName() == p.limit && dimension.GetName() == p.dimension {
				if dimension.GetInterval() != units || l.GetTarget() != 10_000 {
					d.judge.Complain("model", "the rate of %v is not one that the judge can count", p)
				}
				b.rate, b.burst = dimension.GetAmount(), dimension.GetBurst()
			}
		}
	}
}

func (b *debit) advance(now int64) {
	b.gave += b.rate * (now - b.since)
	b.since = now
}

// begin looks at the interval that begins now.
func (b *debit) begin() {
	if begin := b.net - b.gave + b.burst*units; !b.begun || begin < b.least {
		b.least, b.begun = begin, true
	}
}

func (d *debits) bucket(p place) *debit {
	b := d.buckets[p]
	if b == nil {
		b = &debit{since: d.now}
		if unseen := d.unseen[place{limit: p.limit, dimension: p.dimension}]; unseen != nil {
			*b = *unseen
		}
		d.buckets[p] = b
	}
	b.advance(d.now)
	return b
}

func (d *debits) grant(op *logv1.Operation, p place, amount int64) {
	if d.unseen[place{limit: p.limit, dimension: p.dimension}] == nil {
		// Unlimited.
		return
	}
	b := d.bucket(p)
	b.begin()
	b.net += amount * units
	if over := b.net - b.gave - b.least; over > 0 {
		d.judge.Complain("G1", "%v gave %d billionths of a token too many at authority time %v with %v",
			p, over, time.Duration(d.now), op)
	}
}
