package escrow

import (
	"container/heap"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Work is what a step wants proposed. Each ask is told to Answered, each return to
// Returned.
type Work struct {
	Asks    []*logv1.AskEscrow
	Returns []*Return
}

const (
	// restMax is how long a steward sleeps at most.
	restMax = time.Hour
	// gather is how long what was spent to its end waits for others to go back with.
	gather = 200 * time.Millisecond
	// looksMax bounds the keys that one step looks at.
	looksMax = 4096
)

// Step looks at what is due, and returns what to propose and how long there is until
// the next step.
func (w *Wallet) Step() (Work, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.config.Elapsed()
	w.drainLocked(now)
	hot, more := w.hottest()
	var work Work
	for _, h := range hot {
		w.lookLocked(now, h, &work)
	}
	for looks := 0; len(w.alarms) > 0 && w.alarms[0].at <= now && looks < looksMax; looks++ {
		w.ringLocked(now, heap.Pop(&w.alarms).(alarm), &work)
	}
	if w.backs != nil && (len(work.Asks) > 0 || now >= w.backsAt || len(w.backs.parts) >= returnsMax) {
		work.Returns, w.backs = w.backs.split(w), nil
	}
	next := now + restMax
	if more || len(w.retired) > 0 {
		next = now
	}
	if len(w.alarms) > 0 {
		next = min(next, w.alarms[0].at)
	}
	if w.backs != nil {
		next = min(next, w.backsAt)
	}
	return work, max(0, next-now)
}

// hottest are keys to look at, and whether there are more: whoever applies an entry waits
// for a step.
func (w *Wallet) hottest() (some []*holding, more bool) {
	w.hot.Lock()
	defer w.hot.Unlock()
	n := min(len(w.hot.list), looksMax)
	some, w.hot.list = w.hot.list[:n], w.hot.list[n:]
	if len(w.hot.list) == 0 {
		w.hot.list = nil
	}
	return some, w.hot.list != nil
}

// ringLocked does what an alarm is for.
func (w *Wallet) ringLocked(now time.Duration, a alarm, work *Work) {
	switch {
	case a.sequence != 0:
		delete(w.ledger, a.sequence)
		if one := w.asks[a.sequence]; one != nil && now >= one.until {
			w.outcome.Lost++
			delete(w.asks, a.sequence)
		}
	case a.lease != "":
		w.leases[a.lease] = slices.DeleteFunc(w.leases[a.lease], func(r *Reservation) bool { return r.until <= now })
		if len(w.leases[a.lease]) == 0 {
			delete(w.leases, a.lease)
		}
	case a.holding.due == a.at:
		a.holding.due = 0
		w.lookLocked(now, a.holding, work)
	}
}

// lookLocked looks at all pots of a key.
func (w *Wallet) lookLocked(now time.Duration, h *holding, work *Work) {
	s := h.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	h.queued = false
	if h.dropped || s.over {
		return
	}
	next, idle := now+restMax, true
	for i := range h.pots {
		at, used := w.potLocked(now, h, i, work)
		next, idle = min(next, at), idle && !used
	}
	if idle {
		delete(s.keys, h.key)
		h.dropped = true
		w.known.Add(-1)
		return
	}
	w.setLocked(h, max(next, now+time.Millisecond))
}

// potLocked does for one pot what is due, and returns when to look again, and whether
// it is of any use.
func (w *Wallet) potLocked(now time.Duration, h *holding, i int, work *Work) (next time.Duration, used bool) {
	p := &h.pots[i]
	p.demand.fold(now)
	life := h.book.terms.Load().Life
	next = w.tidyLocked(now, p, life)
	if p.ask != nil {
		next = min(next, w.chaseLocked(now, p, work))
	}
	switch {
	case !w.wantsLocked(now, h, i):
		if young := p.youngestLocked(now); young > w.lowLife(life) {
			next = min(next, now+young-w.lowLife(life))
		}
	case now < p.notBefore:
		next = min(next, p.notBefore)
	case !w.isFresh(now, life):
		next = min(next, now+pauseMin)
	default:
		w.askLocked(now, h, i, work)
		next = min(next, p.ask.until)
	}
	// A key that was used is remembered for as long as escrow would live.
	used = p.warm || p.ask != nil || len(p.portions) > 0
	if p.demand.last > 0 && now < p.demand.last+life {
		next, used = min(next, p.demand.last+life), true
	}
	return next, used
}

// tidyLocked lets go of what has ended, and sends back, once, what is spent to its end,
// what nobody has used for half a life, and what is left shortly before its end. It
// returns when that is next.
func (w *Wallet) tidyLocked(now time.Duration, p *pot, life time.Duration) (next time.Duration) {
	next = now + restMax
	p.portions = slices.DeleteFunc(p.portions, func(one *portion) bool {
		goes := min(one.until-life/16, max(p.demand.last, one.since)+life/2)
		switch {
		case one.returned || one.void || now >= one.until:
			return true
		case one.reserved > 0:
			// A return would take from under a lease what is to pay for it.
			next = min(next, one.until)
			return false
		case one.unspent == 0 || now >= goes:
			w.backLocked(now, one)
			return true
		}
		next = min(next, goes)
		return false
	})
	return next
}

// lowLife is how much life the youngest tokens should have at least.
func (w *Wallet) lowLife(life time.Duration) time.Duration { return min(w.config.Failover, life/2) }

// isFresh reports whether the node hears of changes soon enough to ask for what it
// may have to stop spending.
func (w *Wallet) isFresh(now, life time.Duration) bool {
	return now-time.Duration(w.applied.Load()) <= life/2
}

// wantsLocked reports whether a pot should ask for more, were it now. Where one of three
// nodes is lost, who has led it may be, each of the others has half as much again to grant
// until somebody leads.
func (w *Wallet) wantsLocked(now time.Duration, h *holding, i int) bool {
	p := &h.pots[i]
	terms := h.book.terms.Load()
	if h.dropped || w.closed.Load() || p.ask != nil || p.noTurn == h.book.turn.Load() || h.burstLocked(i) == 0 {
		return false
	}
	if !p.warm && !p.demand.used(now, terms) {
		return false
	}
	left := p.leftLocked(now)
	return left == 0 || left < max(p.demand.largest, p.demand.needs(w.config.Failover*3/2)) ||
		p.youngestLocked(now) < w.lowLife(terms.Life)
}

// used reports whether more is likely to be asked for: of one key among many only where
// it was used twice within a life.
func (d *demand) used(now time.Duration, terms *Terms) bool {
	if d.last == 0 || now >= d.last+terms.Life/2 {
		return false
	}
	return !terms.Keyed || d.before > 0 && d.last-d.before < terms.Life
}

// backLocked has a portion go back with a return at a time, or sooner with others. Both
// locks are held.
func (w *Wallet) backLocked(at time.Duration, one *portion) {
	if one.returned {
		return
	}
	if w.backs == nil {
		w.backs, w.backsAt = &Return{}, at+gather
	}
	if one.unspent > 0 {
		w.backsAt = min(w.backsAt, at)
	}
	w.backs.add(one)
}
