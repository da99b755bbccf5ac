package client

import (
	"context"
	"fmt"
	"time"

	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/block"
)

// DeniedError is why Wait gave up: waiting would not have helped in time.
type DeniedError struct{ Denial }

// Error says which limit refuses, and until when.
func (e *DeniedError) Error() string {
	if e.Never {
		return fmt.Sprintf("%s of limit %s: never", e.Reason, e.Limit)
	}
	return fmt.Sprintf("%s of limit %s: come back after %s", e.Reason, e.Limit, e.RetryAfter)
}

// waiter waits for need tokens.
type waiter struct {
	need int64
	// returns: some of it may come back (see hold). reserved: whoever it was has gone,
	// and may spend without asking again.
	returns, reserved bool
	// patient ones stay through refusals, and hear of them in hints.
	patient bool
	hints   chan refusal
	// done gets one outcome.
	done chan outcome
}

// outcome is what became of a waiter: a block that paid, an error, a refusal, or
// nothing of them, because nobody answers.
type outcome struct {
	from   *holding
	err    error
	denied bool
	denial Denial
	// local: the client has decided by itself.
	local bool
}

func newWaiter(need int64, patient bool) *waiter {
	return &waiter{need: need, patient: patient, hints: make(chan refusal, 1), done: make(chan outcome, 1)}
}

func (w *waiter) answer(o outcome) { w.done <- o }

// hint replaces what the waiter was told before.
func (w *waiter) hint(r refusal) {
	select {
	case <-w.hints:
	default:
	}
	w.hints <- r
}

// enqueue puts a waiter in line. It is false, with an outcome, where the answer is
// known already.
func (l *Limiter) enqueue(now time.Duration, w *waiter) (outcome, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := now < l.mu.refusal.until || !w.patient && now < l.mu.refusal.gather
	switch {
	case l.mu.closed:
		return outcome{err: ErrClosed}, false
	case now < l.mu.quiet && l.mu.failure != nil:
		return outcome{err: l.mu.failure}, false
	case known && l.mu.refusal.denial.Never && w.need >= l.mu.refusal.amount,
		known && !w.patient && (w.need >= l.mu.refusal.amount || len(l.mu.queue) > 0):
		return outcome{denied: true, denial: l.mu.refusal.denial}, false
	}
	if known && w.patient {
		w.hint(l.mu.refusal)
	}
	l.lineLocked(append(l.mu.queue, w))
	wake(l.wish)
	return outcome{}, true
}

// leave takes a waiter out of the line. It is false where its outcome is there.
func (l *Limiter) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.mu.queue {
		if other == w {
			l.lineLocked(append(l.mu.queue[:i:i], l.mu.queue[i+1:]...))
			return true
		}
	}
	return false
}

// wait waits for n tokens of which nothing is held, for as long as the authority
// has not said what it thinks. The outcome has a holding where a block paid; ok
// says whether the caller may go ahead.
func (l *Limiter) wait(n int64, returns bool) (o outcome, ok bool) {
	if n > block.TokensMax {
		return outcome{denied: true, denial: l.denial("EXCEEDS_BURST")}, false
	}
	if l.client.machine.Away() {
		return l.local(n)
	}
	w := newWaiter(n, false)
	w.returns = returns
	o, queued := l.enqueue(l.client.clock.Now(), w)
	if !queued {
		return o, false
	}
	timer := time.NewTimer(l.config.Patience)
	defer timer.Stop()
	select {
	case o = <-w.done:
	case <-timer.C:
		if !l.leave(w) {
			o = <-w.done
		}
	}
	return l.conclude(n, o)
}

// conclude makes a decision of an outcome: nobody's answer is the client's own.
func (l *Limiter) conclude(n int64, o outcome) (outcome, bool) {
	switch {
	case o.from != nil:
		return o, true
	case o.err != nil || o.denied:
		return o, false
	}
	return l.local(n)
}

// local decides without the authority.
func (l *Limiter) local(n int64) (outcome, bool) {
	r := l.request(n)
	d := l.client.count(l.client.decide(&r))
	if d.Granted {
		return outcome{local: true}, true
	}
	return outcome{local: true, denied: true, denial: d.Denials[0]}, false
}

func (l *Limiter) request(n int64) Request {
	return Request{
		Client: l.client.config.Client, Class: l.config.Class,
		Charges: []Charge{{l.config.Limit, l.config.Key, l.config.Dimension, n}},
	}
}

func (l *Limiter) denial(reason string) Denial {
	return Denial{Reason: reason, Limit: l.config.Limit, Key: l.config.Key, Dimension: l.config.Dimension, Never: true}
}

// Allow is shorthand for AllowN(1).
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN says whether n tokens may be spent now, and spends them. It answers at
// once while tokens are held, while the authority said no a moment ago, and while
// nobody answers; otherwise within Patience.
func (l *Limiter) AllowN(n int) bool {
	if n <= 0 {
		return true
	}
	if l.spend(l.client.clock.Now(), int64(n)) != nil {
		return true
	}
	_, ok := l.wait(int64(n), false)
	return ok
}

// Wait is shorthand for WaitN(ctx, 1).
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits until n tokens may be spent, and spends them. It returns a
// DeniedError at once where ctx's deadline is before the authority's hint, or
// where no waiting helps; ctx's error; or ErrClosed. Who waits is served in order.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil || n <= 0 {
		return err
	}
	if int64(n) > block.TokensMax {
		return &DeniedError{l.denial("EXCEEDS_BURST")}
	}
	for {
		if l.spend(l.client.clock.Now(), int64(n)) != nil {
			return nil
		}
		decide := l.local
		if !l.client.machine.Away() {
			decide = func(n int64) (outcome, bool) { return l.waitOnce(ctx, n) }
		}
		o, ok := decide(int64(n))
		switch {
		case ok:
			return nil
		case o.err != nil:
			return o.err
		}
		// The client's own refusal is for now: wait and look again.
		wait, never := (&Decision{Denials: []Denial{o.denial}}).RetryAfter()
		if never || tooLate(ctx, wait) {
			return &DeniedError{o.denial}
		}
		if !authority.Pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// waitOnce waits in line for as long as it may help.
func (l *Limiter) waitOnce(ctx context.Context, n int64) (outcome, bool) {
	w := newWaiter(n, true)
	o, queued := l.enqueue(l.client.clock.Now(), w)
	if !queued {
		return o, false
	}
	for {
		select {
		case o = <-w.done:
			return l.conclude(n, o)
		case hint := <-w.hints:
			if tooLate(ctx, hint.until-l.client.clock.Now()) && l.leave(w) {
				return outcome{err: &DeniedError{hint.denial}}, false
			}
		case <-ctx.Done():
			if l.leave(w) {
				return outcome{err: ctx.Err()}, false
			}
			if o = <-w.done; o.from != nil {
				o.from.Settle(n, 0)
				l.cameBack()
			}
			return outcome{err: ctx.Err()}, false
		}
	}
}

// tooLate says whether ctx ends before wait has passed.
func tooLate(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < wait
}
