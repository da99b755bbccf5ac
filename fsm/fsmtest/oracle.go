package fsmtest

import (
	"fmt"
	"math/big"
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Bound checks the debit bound (G1) of a history, in fractions: for every bucket
// and every interval, grants less what came back are at most the burst at its
// beginning and what the rates gave in it. Tell it every result, in order, of a
// history without adjustments; a limit that is deleted goes on at its last rate.
type Bound struct {
	t       testing.TB
	now     int64
	limits  map[string]*logv1.Limit
	buckets map[string]*bounded
	leases  map[string][]*logv1.Charge
	held    map[string]*lent
}

// bounded is one bucket.
//
// With net(t) the grants so far less what came back, and gave(t) what the rates
// have given, the bound for the interval from s to e is
//
//	net(e) − gave(e) ≤ net(s) − gave(s) + burst(s)
//
// so that the least of the right sides is all that has to be kept.
type bounded struct {
	limit, dimension string
	since            int64
	rate, burst      *big.Rat
	gave, net        *big.Rat
	least            *big.Rat
}

// NewBound is a checker that knows of no limit.
func NewBound(t testing.TB) *Bound {
	return &Bound{
		t: t, limits: make(map[string]*logv1.Limit), buckets: make(map[string]*bounded),
		leases: make(map[string][]*logv1.Charge), held: make(map[string]*lent),
	}
}

// Entry takes one entry with its results.
func (b *Bound) Entry(entry *logv1.Entry, results []*logv1.Result) {
	b.t.Helper()
	b.now = max(b.now, entry.GetStamp())
	for i, op := range entry.GetOperations() {
		switch result := results[i].GetKind().(type) {
		case *logv1.Result_Limits:
			b.changed(result.Limits)
		case *logv1.Result_Acquire:
			if result.Acquire.GetGranted() && !result.Acquire.GetRepeated() {
				b.granted(op.GetAcquire(), result.Acquire)
			}
		case *logv1.Result_Escrow:
			b.lends(op.GetAskEscrow(), result.Escrow)
		case *logv1.Result_Done:
			b.takesBack(op.GetReturnEscrow())
		case *logv1.Result_Lease:
			if !result.Lease.GetRepeated() && result.Lease.GetState() != logv1.LeaseState_LEASE_STATE_OPEN {
				b.returned(result.Lease)
			}
		}
	}
}

func (b *Bound) changed(result *logv1.LimitsResult) {
	for _, c := range result.GetChanges() {
		if c.GetLimitAfter() == nil {
			continue
		}
		b.limits[c.GetName()] = c.GetLimitAfter()
		for _, one := range b.buckets {
			if one.limit == c.GetName() {
				b.advance(one)
				b.configure(one)
			}
		}
	}
}

// configure takes the numbers of the limit now; a dimension that is gone keeps
// its last ones.
func (b *Bound) configure(one *bounded) {
	limit := b.limits[one.limit]
	for _, d := range limit.GetDimensions() {
		if d.GetName() == one.dimension {
			one.burst = big.NewRat(d.GetBurst(), 1)
			one.rate = new(big.Rat).Mul(big.NewRat(d.GetAmount(), d.GetInterval()), big.NewRat(limit.GetTarget(), 10_000))
		}
	}
}

func (b *Bound) advance(one *bounded) {
	passed := new(big.Rat).Mul(one.rate, big.NewRat(b.now-one.since, 1))
	one.gave.Add(one.gave, passed)
	one.since = b.now
}

func (b *Bound) bucket(limit, key, dimension string) *bounded {
	id := fmt.Sprintf("%q/%q/%q", limit, key, dimension)
	one := b.buckets[id]
	if one == nil {
		one = &bounded{
			limit: limit, dimension: dimension, since: b.now,
			rate: new(big.Rat), burst: new(big.Rat), gave: new(big.Rat), net: new(big.Rat),
		}
		b.configure(one)
		b.buckets[id] = one
	}
	b.advance(one)
	return one
}

func (b *Bound) granted(op *logv1.Acquire, result *logv1.AcquireResult) {
	b.t.Helper()
	paid := b.paid(op, result)
	for _, c := range result.GetCharges() {
		if !b.limits[c.GetLimit()].GetUnlimited() && !paid[place(c.GetLimit(), c.GetKey(), c.GetDimension())] {
			b.debit(c, op)
		}
	}
}

// debit takes a charge from its bucket.
func (b *Bound) debit(c *logv1.Charge, op any) {
	b.t.Helper()
	one := b.bucket(c.GetLimit(), c.GetKey(), c.GetDimension())
	begin := new(big.Rat).Sub(one.net, one.gave)
	begin.Add(begin, one.burst)
	if one.least == nil || begin.Cmp(one.least) < 0 {
		one.least = begin
	}
	one.net.Add(one.net, big.NewRat(c.GetAmount(), 1))
	if end := new(big.Rat).Sub(one.net, one.gave); end.Cmp(one.least) > 0 {
		over := new(big.Rat).Sub(end, one.least)
		b.t.Fatalf("G1: %v of %s %s over the bound at %d with %v", over.FloatString(9), c.GetLimit(), c.GetKey(), b.now, op)
	}
}

func (b *Bound) returned(result *logv1.LeaseResult) {
	for _, s := range result.GetSettlements() {
		if s.GetRefunded() > 0 {
			one := b.bucket(s.GetLimit(), s.GetKey(), s.GetDimension())
			one.net.Sub(one.net, big.NewRat(s.GetRefunded(), 1))
		}
	}
}
