package client

import (
	"context"
	"math"
	"time"

	"github.com/quorlease/quorlease/client/block"
)

// Reservation is a promise to spend tokens after Delay. It is not for concurrent
// use.
type Reservation struct {
	limiter *Limiter
	need    int64
	ok      bool
	at      time.Time
	// One of them: a block has paid, or the waiter is in line.
	from *holding
	wait *waiter
}

// Reserve is shorthand for ReserveN(1).
func (l *Limiter) Reserve() *Reservation { return l.ReserveN(1) }

// ReserveN reserves n tokens: the caller may act, once, when Delay has passed,
// without asking again. The tokens are leased in the meantime, before those of
// anybody who comes later. Delay is the authority's hint; where others were
// served first there, the reservation is paid somewhat later than it was used.
//
// Reserved tokens can't be had sooner than the limit allows: OK is false where
// no waiting helps, and where nobody answers and the client itself refuses.
func (l *Limiter) ReserveN(n int) *Reservation {
	now := time.Now()
	r := &Reservation{limiter: l, need: int64(n), at: now, ok: true}
	if n <= 0 {
		return r
	}
	if r.need > block.TokensMax {
		r.ok = false
		return r
	}
	if r.from = l.hold(l.client.clock.Now(), r.need); r.from != nil {
		return r
	}
	if l.client.machine.Away() {
		_, r.ok = l.local(r.need)
		return r
	}
	w := newWaiter(r.need, true)
	w.returns, w.reserved = true, true
	if _, queued := l.enqueue(l.client.clock.Now(), w); !queued {
		r.ok = false
		return r
	}
	timer := time.NewTimer(l.config.Patience)
	defer timer.Stop()
	select {
	case o := <-w.done:
		r.from, r.ok = o.from, o.err == nil && !o.denied
	case hint := <-w.hints:
		r.wait = w
		r.at = now.Add(max(0, hint.until-l.client.clock.At(now)))
		r.line(w)
	case <-timer.C:
		if l.leave(w) {
			_, r.ok = l.local(r.need)
		} else {
			o := <-w.done
			r.from, r.ok = o.from, o.err == nil && !o.denied
		}
	}
	return r
}

// line finds out when everybody up to the waiter can have been served. Where
// nobody says the hint stands.
func (r *Reservation) line(w *waiter) {
	l := r.limiter
	l.mu.Lock()
	var sum int64
	for _, other := range l.mu.queue {
		sum = min(sum+other.need, block.TokensMax)
		if other == w {
			break
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), l.config.Patience)
	defer cancel()
	charge := Charge{l.config.Limit, l.config.Key, l.config.Dimension, sum}
	d, err := l.client.Peek(ctx, l.config.Class, charge)
	if err != nil {
		return
	}
	if d.Granted {
		r.at = time.Now()
		return
	}
	wait, never := d.RetryAfter()
	if never {
		r.Cancel()
		r.ok = false
		return
	}
	r.at = time.Now().Add(wait)
}

// OK says whether the tokens are reserved. Where it is false Delay is InfDuration.
func (r *Reservation) OK() bool { return r.ok }

// InfDuration is the Delay of a Reservation that is not OK.
const InfDuration = time.Duration(math.MaxInt64)

// Delay is how long to wait before acting, 0 for at once.
func (r *Reservation) Delay() time.Duration {
	if !r.ok {
		return InfDuration
	}
	return max(0, time.Until(r.at))
}

// Cancel gives the tokens back, as far as they were not used. A second call does
// nothing.
func (r *Reservation) Cancel() {
	from := r.from
	r.from = nil
	if w := r.wait; w != nil {
		r.wait = nil
		if !r.limiter.leave(w) {
			from = (<-w.done).from
		}
	}
	if from != nil {
		from.Settle(r.need, 0)
		from.unsettled.Add(-1)
		r.limiter.cameBack()
	}
}

// Permit is the right to spend what Take took. Say what was used with Settle,
// once.
type Permit struct {
	limiter  *Limiter
	from     *holding
	estimate int64
	local    bool
}

// Local says that the client decided by itself, because nobody answered: yes or
// no, whichever Take returned.
func (p Permit) Local() bool { return p.local }

// Take is AllowN for an estimate: how much it really was is said with
// Permit.Settle, and is settled inside the block, without asking anybody.
func (l *Limiter) Take(n int) (Permit, bool) {
	if n <= 0 {
		return Permit{limiter: l}, true
	}
	if h := l.hold(l.client.clock.Now(), int64(n)); h != nil {
		return Permit{limiter: l, from: h, estimate: int64(n)}, true
	}
	o, ok := l.wait(int64(n), true)
	if !ok {
		return Permit{local: o.local}, false
	}
	return Permit{limiter: l, from: o.from, estimate: int64(n), local: o.local}, true
}

// Settle says what was used. What was estimated too high may be spent again
// before the lease ends; after that it is lost. What was estimated too low is
// taken from what is held, and where that is not enough it is owed, and charged
// with the lease: as debt, where the bucket has no more. Of a permit that the
// client gave while nobody answered the estimate stands.
func (p Permit) Settle(used int) {
	if p.from == nil {
		return
	}
	n := int64(max(0, used))
	settled := p.from.Settle(p.estimate, n)
	p.from.unsettled.Add(-1)
	switch {
	case settled && n < p.estimate:
		p.limiter.cameBack()
	case !settled && n > p.estimate:
		p.limiter.excess(n - p.estimate)
	}
}

// excess takes tokens that were used already.
func (l *Limiter) excess(n int64) {
	now := l.client.clock.Now()
	for _, h := range *l.held.Load() {
		n -= h.SpendUpTo(now, n)
		if n == 0 {
			return
		}
	}
	l.owe(n)
}
