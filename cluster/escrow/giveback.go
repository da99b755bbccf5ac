package escrow

import (
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// returnsMax bounds the returns of one operation.
const returnsMax = 512

// Return is escrow on its way back. It is unspent no more, whatever becomes of it,
// unless it certainly was not applied (T42).
type Return struct {
	// Operation is what to propose.
	Operation *logv1.Operation
	parts     []part
}

// part is what goes back of one portion.
type part struct {
	of     *portion
	tokens int64
}

// add takes what is unspent out of a portion. The lock of its shard is held.
func (r *Return) add(one *portion) {
	r.parts = append(r.parts, part{one, one.unspent})
	one.unspent, one.returned = 0, true
}

// seal makes the operation.
func (r *Return) seal(w *Wallet) {
	op := &logv1.ReturnEscrow{Returns: make([]*logv1.EscrowReturn, len(r.parts))}
	for i, p := range r.parts {
		op.Returns[i] = &logv1.EscrowReturn{Id: w.id(p.of.sequence), Unspent: p.tokens}
	}
	r.Operation = &logv1.Operation{Kind: &logv1.Operation_ReturnEscrow{ReturnEscrow: op}}
}

// split makes operations of a return, none with more than may be in one.
func (r *Return) split(w *Wallet) []*Return {
	var list []*Return
	for parts := range slices.Chunk(r.parts, returnsMax) {
		one := &Return{parts: parts}
		one.seal(w)
		list = append(list, one)
	}
	return list
}

// Leave ends granting, because the process ends, and takes all that is held out of the
// wallet, to go back. What is set aside for leases is left to pay for them. It may be called
// again for what asks under way have brought meanwhile.
func (w *Wallet) Leave() []*Return {
	w.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.config.Elapsed()
	r := w.backs
	w.backs = nil
	if r == nil {
		r = &Return{}
	}
	leave := func(h *holding) {
		for i := range h.pots {
			for _, one := range h.pots[i].portions {
				if one.reserved == 0 && !one.returned && now < one.until {
					r.add(one)
				}
			}
		}
	}
	for _, b := range w.books.Load().byLimit {
		for i := range b.shards {
			s := &b.shards[i]
			s.mu.Lock()
			for _, h := range s.keys {
				leave(h)
			}
			s.mu.Unlock()
		}
	}
	for _, old := range w.retired {
		for _, h := range old.keys {
			h.shard.mu.Lock()
			leave(h)
			h.shard.mu.Unlock()
		}
	}
	return r.split(w)
}

// Awaits says whether something may come yet that would have to go back: an ask is under
// way, or has just brought it.
func (w *Wallet) Awaits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.backs != nil {
		return true
	}
	for _, a := range w.asks {
		if a.again == 0 {
			return true
		}
	}
	return false
}

// Returned tells what became of a return. One that certainly was not applied is held
// again; what is void goes back later.
func (w *Wallet) Returned(r *Return, err error) {
	if outcome.MayHaveHappened(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.config.Elapsed()
	for _, p := range r.parts {
		h := p.of.at
		h.shard.mu.Lock()
		p.of.returned = false
		switch {
		case now >= p.of.until:
		case p.of.isVoid() || h.dropped:
			p.of.void = true
			p.of.unspent += p.tokens
			w.backLocked(now+pauseMin, p.of)
		default:
			p.of.unspent += p.tokens
			pot := &h.pots[p.of.pot]
			if !slices.Contains(pot.portions, p.of) {
				pot.portions = append(pot.portions, p.of)
			}
			w.setLocked(h, now+pauseMin)
		}
		h.shard.mu.Unlock()
	}
	w.nudge()
}
