package fsmtest

import (
	"fmt"
	"math/big"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// lent is an ask of one of two nodes, or what they give back.
func (w *World) lent() *logv1.Operation {
	if len(w.asks) > 0 && w.Choose(6) == 0 {
		return Operation(w.asks[w.Choose(len(w.asks))])
	}
	if w.Choose(5) < 3 {
		w.asked++
		limit := pick(w, "l0", "l0", w.limit())
		op := Ask(w.escrowID(), Charge(limit, w.key(limit), w.dimension(), pick(w, int64(1), 20, 100, 500)),
			pick(w, "", "", "live", "batch"))
		w.asks = append(w.asks[max(0, len(w.asks)-3):], op.GetAskEscrow())
		return op
	}
	op := &logv1.ReturnEscrow{}
	for range 1 + w.Choose(3) {
		id := w.escrowID()
		if len(w.asks) > 0 && w.Choose(4) > 0 {
			id = w.asks[w.Choose(len(w.asks))].GetId()
		}
		op.Returns = append(op.Returns, &logv1.EscrowReturn{Id: id, Unspent: pick(w, int64(0), 1, 20, 1000)})
	}
	return Operation(op)
}

// escrowID is one of the last few, of any process.
func (w *World) escrowID() *logv1.EscrowID {
	back := min(uint64(pick(w, 0, 0, 0, 1, 2, 5)), w.asked)
	id := EscrowID(pick(w, "n1.1", "n1.1", "n2.1"), uint64(w.Choose(2)), w.asked-back)
	if w.Tame {
		id.Sequence = max(1, id.GetSequence())
	}
	return id
}

// lends makes a limit one of which nodes hold something, mostly.
func (w *World) lends(limit *logv1.Limit) {
	limit.Escrow, limit.Exact = int64(pick(w, 0, time.Second, 3*time.Second, time.Minute)), w.Choose(8) == 0
	for _, d := range limit.GetDimensions() {
		if w.Choose(4) > 0 {
			d.Burst, d.Amount = int64(pick(w, 200, 1000)), int64(pick(w, 1, 20, 100))
		}
	}
}

// reserved makes a tracked acquire one that escrow is to pay for, of what was asked for or of
// something else.
func (w *World) reserved(op *logv1.Acquire) {
	if !op.GetTrack() || len(w.asks) == 0 || w.Choose(4) == 0 {
		return
	}
	a := w.asks[w.Choose(len(w.asks))]
	if w.Choose(4) > 0 {
		op.Charges = append(op.Charges[:w.Choose(len(op.GetCharges()))],
			Charge(a.GetLimit(), a.GetKey(), a.GetDimension(), pick(w, int64(1), 3, 20)))
		op.Class = a.GetClass()
	}
	op.Charges[len(op.GetCharges())-1].Escrow = a.GetId()
}

// lent is what a node was given of a bucket, for Bound.
type lent struct {
	limit, key, dimension string
	left, until           int64
}

func idText(id *logv1.EscrowID) string {
	return fmt.Sprintf("%q.%d.%d", id.GetNode(), id.GetBoot(), id.GetSequence())
}

// lends debits what a node was given.
func (b *Bound) lends(op *logv1.AskEscrow, r *logv1.EscrowResult) {
	b.t.Helper()
	if r.GetOutcome() != logv1.EscrowResult_OUTCOME_GRANTED || r.GetRepeated() {
		return
	}
	id := idText(op.GetId())
	if b.held[id] != nil {
		b.t.Fatalf("T7: %v is given once more", op)
	}
	b.held[id] = &lent{op.GetLimit(), op.GetKey(), op.GetDimension(), r.GetAmount(), b.now + r.GetLife()}
	b.debit(Charge(op.GetLimit(), op.GetKey(), op.GetDimension(), r.GetAmount()), op)
}

// takesBack credits what comes back, at most. What the burst has no room for is credited
// too: that makes the bound wider, never narrower.
func (b *Bound) takesBack(op *logv1.ReturnEscrow) {
	for _, r := range op.GetReturns() {
		one := b.held[idText(r.GetId())]
		if one == nil || b.now >= one.until {
			continue
		}
		back := min(r.GetUnspent(), one.left)
		one.left, one.until = 0, 0
		bucket := b.bucket(one.limit, one.key, one.dimension)
		bucket.net.Sub(bucket.net, big.NewRat(back, 1))
	}
}

// paid are the charges of an acquire that escrow paid: they were debited when it was
// given.
func (b *Bound) paid(op *logv1.Acquire, result *logv1.AcquireResult) map[string]bool {
	b.t.Helper()
	places := make(map[string]bool)
	for _, at := range result.GetPaid() {
		c := op.GetCharges()[at]
		one := b.held[idText(c.GetEscrow())]
		if one == nil || b.now >= one.until || one.left < c.GetAmount() ||
			place(one.limit, one.key, one.dimension) != place(c.GetLimit(), c.GetKey(), c.GetDimension()) {
			b.t.Fatalf("T41: %v is paid from %+v at %d", c, one, b.now)
		}
		one.left -= c.GetAmount()
		places[place(c.GetLimit(), c.GetKey(), c.GetDimension())] = true
	}
	return places
}
