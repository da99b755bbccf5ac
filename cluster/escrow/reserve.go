package escrow

import (
	"container/heap"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Reservation is what was set aside to pay for one tracked acquire.
type Reservation struct {
	// Operation is the acquire, with what pays for its charges.
	Operation *logv1.Operation
	parts     []set
	until     time.Duration
	done      bool
}

// set is what was set aside for one charge.
type set struct {
	of     *portion
	charge int
	tokens int64
}

// Reserve sets aside what may pay for a tracked acquire: for each charge that one
// portion has enough for. It is nil where there is nothing (T41). The acquire must be
// proposed once at most.
func (w *Wallet) Reserve(op *logv1.Acquire) *Reservation {
	all := w.books.Load()
	if len(all.byLimit) == 0 || !op.GetTrack() || len(op.GetLeaseId()) == 0 || w.closed.Load() {
		return nil
	}
	r := &Reservation{}
	now := w.config.Elapsed()
	for i, c := range op.GetCharges() {
		at, ok := all.find(op.GetClass(), c)
		if !ok || c.GetAmount() < 1 {
			continue
		}
		at.shard.mu.Lock()
		if h := at.shard.keys[c.GetKey()]; h != nil {
			if one := h.pots[at.pot].reserveLocked(now, c.GetAmount()); one != nil {
				r.parts = append(r.parts, set{one, i, c.GetAmount()})
				r.until = max(r.until, one.until)
			}
		}
		at.shard.mu.Unlock()
	}
	if len(r.parts) == 0 {
		return nil
	}
	paying := proto.CloneOf(op)
	for _, p := range r.parts {
		paying.Charges[p.charge].Escrow = w.id(p.of.sequence)
	}
	r.Operation = &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: paying}}
	w.mu.Lock()
	defer w.mu.Unlock()
	lease := string(op.GetLeaseId())
	w.leases[lease] = append(w.leases[lease], r)
	heap.Push(&w.alarms, alarm{at: r.until, lease: lease})
	return r
}

// reserveLocked takes n tokens of one portion out of what can be spent.
func (p *pot) reserveLocked(now time.Duration, n int64) *portion {
	for _, one := range p.portions {
		if now < one.until && one.unspent >= n {
			one.unspent -= n
			one.reserved += n
			return one
		}
	}
	return nil
}

// Free gives back what was set aside for an acquire that certainly was not paid by it.
// denied: its answer said so, so that the node may still apply the entry which did.
func (w *Wallet) Free(r *Reservation, denied bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleLocked(r, nil)
	if !denied {
		w.forgetLocked(r)
	}
}

// forgetLocked has no applied entry speak of r any more.
func (w *Wallet) forgetLocked(r *Reservation) {
	lease := string(r.Operation.GetAcquire().GetLeaseId())
	if left := slices.DeleteFunc(w.leases[lease], func(other *Reservation) bool { return other == r }); len(left) > 0 {
		w.leases[lease] = left
	} else {
		delete(w.leases, lease)
	}
}

// settleLocked ends a reservation: the charges in paid, by their place, took theirs.
func (w *Wallet) settleLocked(r *Reservation, paid []uint32) {
	if r.done {
		return
	}
	r.done = true
	for _, p := range r.parts {
		h := p.of.at
		h.shard.mu.Lock()
		p.of.reserved -= p.tokens
		if !slices.Contains(paid, uint32(p.charge)) && !p.of.isVoid() && !p.of.returned {
			p.of.unspent += p.tokens
		}
		w.queueLocked(h)
		h.shard.mu.Unlock()
	}
}

// paid takes what an applied acquire says of those who paid for it.
func (w *Wallet) paid(op *logv1.Acquire, result *logv1.AcquireResult) {
	mine := func(c *logv1.Charge) bool { return w.mine(c.GetEscrow()) }
	if !op.GetTrack() || !slices.ContainsFunc(op.GetCharges(), mine) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Two that ask for the same can't be told apart. Of one whose denial was heard the
	// entry is the one that comes first.
	var r *Reservation
	for _, one := range w.leases[string(op.GetLeaseId())] {
		if one.fits(op) && (r == nil || one.done && !r.done) {
			r = one
		}
	}
	if r == nil {
		return
	}
	var paid []uint32
	if !result.GetRepeated() {
		// What a repeated answer says was paid by an earlier operation.
		paid = result.GetPaid()
	}
	w.settleLocked(r, paid)
	w.forgetLocked(r)
}

// fits reports whether an operation is the one that a reservation is for.
func (r *Reservation) fits(op *logv1.Acquire) bool {
	own := r.Operation.GetAcquire().GetCharges()
	return slices.EqualFunc(own, op.GetCharges(), func(a, b *logv1.Charge) bool {
		return a.GetAmount() == b.GetAmount() && a.GetEscrow().GetSequence() == b.GetEscrow().GetSequence()
	})
}
