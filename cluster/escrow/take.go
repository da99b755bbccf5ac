package escrow

import (
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// chargesMax is how many charges an acquire may have that is paid at once.
const chargesMax = 16

// Room is memory for the answer to one acquire.
type Room struct {
	result  logv1.Result
	kind    logv1.Result_Acquire
	acquire logv1.AcquireResult
}

// Clear forgets the answer.
func (r *Room) Clear() {
	r.result.Reset()
	r.acquire.Reset()
	r.kind.Acquire = nil
}

// Take grants an acquire from what is held, all of it or nothing (G3). It is nil where
// it can't: then others decide. Only acquires without a record are granted here.
func (w *Wallet) Take(op *logv1.Acquire) *logv1.Result { return w.TakeInto(op, nil) }

// TakeInto is Take with room for the answer, which is new or was cleared; nil: it makes
// some. The answer has the charges of op, and nothing else of it.
func (w *Wallet) TakeInto(op *logv1.Acquire, room *Room) *logv1.Result {
	charges := op.GetCharges()
	all := w.books.Load()
	if len(all.byLimit) == 0 || !plain(op) || op.Revision != nil && op.GetRevision() != all.revision || w.closed.Load() {
		return nil
	}
	var lease time.Duration
	if len(charges) == 1 {
		lease = w.takeOne(all, op.GetClass(), charges[0])
	} else {
		lease = w.takeAll(all, op)
	}
	if lease == 0 {
		return nil
	}
	a := room
	if a == nil {
		a = &Room{}
	}
	a.acquire.Granted, a.acquire.Escrow = true, true
	a.acquire.State, a.acquire.Ttl = logv1.LeaseState_LEASE_STATE_OPEN, int64(lease)
	a.acquire.Charges = charges
	a.kind.Acquire = &a.acquire
	a.result.Kind = &a.kind
	return &a.result
}

// plain reports whether nothing about an acquire needs an entry.
func plain(op *logv1.Acquire) bool {
	n := len(op.GetCharges())
	if op.GetTrack() || n == 0 || n > chargesMax || len(op.GetSession()) > 0 {
		return false
	}
	for _, c := range op.GetCharges() {
		if c.GetKeep() != 0 || c.GetAmount() < 1 || c.Escrow != nil {
			return false
		}
	}
	return true
}

// takeOne pays one charge and returns the life of the lease, 0 where it can't.
func (w *Wallet) takeOne(all *books, class string, c *logv1.Charge) time.Duration {
	at, ok := all.find(class, c)
	if !ok {
		return 0
	}
	now := w.config.Elapsed()
	at.shard.mu.Lock()
	h := at.shard.keys[c.GetKey()]
	if h == nil || h.pots[at.pot].leftLocked(now) < c.GetAmount() {
		at.shard.mu.Unlock()
		return 0
	}
	h.pots[at.pot].spendLocked(now, c.GetAmount())
	look := w.lowLocked(now, h, at.pot)
	at.shard.mu.Unlock()
	if look {
		w.look(h)
	}
	return at.book.terms.Load().Lease
}

// lowLocked marks a key for the steward where a pot has less than it should, and
// returns whether it did.
func (w *Wallet) lowLocked(now time.Duration, h *holding, pot int) bool {
	if h.queued || !w.wantsLocked(now, h, pot) || now < h.pots[pot].notBefore {
		return false
	}
	h.queued = true
	return true
}

// takeAll pays several charges. Their shards are locked in the order of their ids.
func (w *Wallet) takeAll(all *books, op *logv1.Acquire) time.Duration {
	var room [chargesMax]spot
	charges := op.GetCharges()
	spots := room[:len(charges)]
	lease := all.findAll(op, spots)
	if lease == 0 {
		return 0
	}
	var locks [chargesMax]*shard
	for i := range spots {
		locks[i] = spots[i].shard
	}
	held := inOrder(locks[:len(spots)])
	now := w.config.Elapsed()
	for _, s := range held {
		s.mu.Lock()
	}
	paid := w.payLocked(now, spots, charges)
	var looks [chargesMax]*holding
	n := 0
	for i := range spots {
		h := spots[i].shard.keys[charges[i].GetKey()]
		if paid && w.lowLocked(now, h, spots[i].pot) {
			looks[n], n = h, n+1
		}
	}
	for _, s := range held {
		s.mu.Unlock()
	}
	for _, h := range looks[:n] {
		w.look(h)
	}
	if !paid {
		return 0
	}
	return lease
}

// findAll finds where each charge of an acquire is paid, and returns the least life of
// a lease; 0 where one can't be paid. Nor can two of the same bucket: the state machine
// says what it thinks of that.
func (b *books) findAll(op *logv1.Acquire, spots []spot) (lease time.Duration) {
	charges := op.GetCharges()
	for i, c := range charges {
		at, ok := b.find(op.GetClass(), c)
		if !ok {
			return 0
		}
		for j := range i {
			if spots[j].book == at.book && spots[j].pot == at.pot && charges[j].GetKey() == c.GetKey() {
				return 0
			}
		}
		spots[i] = at
		if one := at.book.terms.Load().Lease; lease == 0 || one < lease {
			lease = one
		}
	}
	return lease
}

// inOrder sorts shards for locking, each once.
func inOrder(list []*shard) []*shard {
	slices.SortFunc(list, func(a, b *shard) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return 0
	})
	return slices.Compact(list)
}

// payLocked looks at every pot before it takes from any.
func (w *Wallet) payLocked(now time.Duration, spots []spot, charges []*logv1.Charge) bool {
	for i, at := range spots {
		h := at.shard.keys[charges[i].GetKey()]
		if h == nil || h.pots[at.pot].leftLocked(now) < charges[i].GetAmount() {
			return false
		}
	}
	for i, at := range spots {
		at.shard.keys[charges[i].GetKey()].pots[at.pot].spendLocked(now, charges[i].GetAmount())
	}
	return true
}

// Note counts what an entry granted to an acquire of this node's own callers: only
// what was granted is demand (T16). The first use of a key alone asks for nothing, and
// leaves next to nothing behind.
func (w *Wallet) Note(op *logv1.Acquire) {
	all := w.books.Load()
	if len(all.byLimit) == 0 || !plain(op) {
		return
	}
	now := w.config.Elapsed()
	for _, c := range op.GetCharges() {
		at, ok := all.find(op.GetClass(), c)
		if !ok {
			continue
		}
		if terms := at.book.terms.Load(); terms.burst(terms.forKey(c.GetKey()), at.pot) == 0 {
			continue
		}
		at.shard.mu.Lock()
		h, look := w.noteLocked(now, &at, c)
		at.shard.mu.Unlock()
		if look {
			w.look(h)
		}
	}
}

// noteLocked counts one charge, and says whether the steward is to look at its key.
func (w *Wallet) noteLocked(now time.Duration, at *spot, c *logv1.Charge) (h *holding, look bool) {
	if h = at.shard.keys[c.GetKey()]; h != nil {
		h.pots[at.pot].demand.count(now, c.GetAmount())
		return h, w.lowLocked(now, h, at.pot)
	}
	terms := at.book.terms.Load()
	before := time.Duration(0)
	if terms.Keyed && !at.shard.over {
		var again bool
		if before, again = at.shard.touched.again(at.tag(), now, terms.Life); !again {
			return nil, false
		}
	}
	if h = w.holdingLocked(at.book, at.shard, c.GetKey()); h == nil {
		return nil, false
	}
	h.pots[at.pot].demand.last = before
	h.pots[at.pot].demand.count(now, c.GetAmount())
	// The steward forgets a new one after a time, whether it is low or not.
	h.queued = true
	return h, true
}

// Vacate takes out of the wallet what is unspent of the buckets that an acquire
// charges and that escrow does not pay for, for a return before it; nil where there is
// nothing (T16, T44).
func (w *Wallet) Vacate(op *logv1.Acquire) *Return {
	all := w.books.Load()
	if len(all.byLimit) == 0 {
		return nil
	}
	var r *Return
	now := w.config.Elapsed()
	for _, c := range op.GetCharges() {
		at, ok := all.find(op.GetClass(), c)
		if !ok || c.Escrow != nil {
			continue
		}
		n := at.book.terms.Load().classes()
		first := at.pot / n * n
		at.shard.mu.Lock()
		if h := at.shard.keys[c.GetKey()]; h != nil {
			for i := first; i < first+n; i++ {
				r = h.pots[i].drainLocked(now, r)
			}
		}
		at.shard.mu.Unlock()
	}
	if r != nil {
		r.seal(w)
	}
	return r
}
