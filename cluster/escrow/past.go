package escrow

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// pastMax bounds the pots of before that are remembered (G10).
const pastMax = 1 << 12

// past is what an earlier process of the node was given, by the log that it left behind.
// A pot is likely to be used again where that was within two lives before the end of that
// log: a pot in use is asked for once a life at least.
type past struct {
	pots map[pastPot]pastAsk
	// over: it has been made use of, and nothing more is remembered.
	over bool
	// full is until when there is room for no more.
	full time.Duration
}

type pastPot struct{ limit, key, dimension, class string }

// pastAsk is what a pot was given in a life, from its first ask in it on, and in the one
// before, and until when that says anything, in authority time. A pot that is in use is
// topped up several times a life.
type pastAsk struct {
	amount, before int64
	began, until   time.Duration
}

// add takes in what was given at now.
func (a pastAsk) add(now time.Duration, amount int64, life time.Duration) pastAsk {
	switch age := now - a.began; {
	case age >= 2*life:
		a = pastAsk{began: now}
	case age >= life:
		a = pastAsk{before: a.amount, began: now}
	}
	a.amount, a.until = min(countMax, a.amount+amount), now+2*life
	return a
}

// Recall takes what an earlier process of this node was given at now, in authority time,
// for a life. It is passed over once the wallet has warmed.
func (w *Wallet) Recall(now time.Duration, op *logv1.AskEscrow, amount int64, life time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.past
	of := pastPot{op.GetLimit(), op.GetKey(), op.GetDimension(), op.GetClass()}
	one, known := p.pots[of]
	if p.over || !known && !p.room(now) {
		return
	}
	if !known {
		one.began = now
	}
	if p.pots == nil {
		p.pots = make(map[pastPot]pastAsk)
	}
	p.pots[of] = one.add(now, amount, life)
}

// room reports whether there is room for one more, where need be by forgetting those that
// say nothing any more.
func (p *past) room(now time.Duration) bool {
	if len(p.pots) < pastMax || now < p.full {
		return len(p.pots) < pastMax
	}
	p.full = now + time.Second
	for of, one := range p.pots {
		if one.until <= now {
			delete(p.pots, of)
		}
	}
	return len(p.pots) < pastMax
}

// Warm asks for what is likely to be used, before it is: the node has applied the log that
// an earlier process left behind, and it is now, in authority time. It does that once.
func (w *Wallet) Warm(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, elapsed := w.books.Load(), w.config.Elapsed()
	for of, one := range w.past.pots {
		at, ok := all.find(of.class, &logv1.Charge{Limit: of.limit, Key: of.key, Dimension: of.dimension})
		if !ok || one.until <= now {
			continue
		}
		at.shard.mu.Lock()
		if h := w.holdingLocked(at.book, at.shard, of.key); h != nil {
			p := &h.pots[at.pot]
			p.warm = true
			p.demand.expect(elapsed, max(one.amount, one.before), at.book.terms.Load().Life)
			w.queueLocked(h)
		}
		at.shard.mu.Unlock()
	}
	w.past = past{over: true}
}

// expect takes as many tokens in a time for what is granted, until that shows.
func (d *demand) expect(now time.Duration, n int64, in time.Duration) {
	d.mean, d.folded = max(d.mean, min(countMax, n)*1000/max(1, in.Milliseconds())), now
}
