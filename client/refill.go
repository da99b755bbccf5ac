package client

import (
	"context"
	"errors"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/block"
	"github.com/quorlease/quorlease/client/failopen"
)

const (
	// retireMax is how long before its end a block is settled at most; a tenth of
	// its life where that is shorter.
	retireMax = 250 * time.Millisecond
	// holdingsMax is how many blocks are kept for permits that are not settled yet.
	holdingsMax = 16
	// neverPause is for how long a refusal for ever is taken to hold: an operator
	// may change the limit.
	neverPause = time.Second
	// shortPause is how long tokens of a short bucket gather at least.
	shortPause = 50 * time.Millisecond
	// fetchPatience is how long one question for a block may take at least.
	fetchPatience = 500 * time.Millisecond
	// idleWake is how long the goroutine sleeps where nothing is to be done.
	idleWake = time.Hour
)

// errTooShort: leases of the limit end before they arrive.
var errTooShort = errors.New("leases of this limit are too short to be held")

// run keeps the limiter in tokens.
func (l *Limiter) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := l.client.clock.Now()
		l.retire(ctx, now)
		if l.waiting.Load() > 0 {
			// Somebody may have come into line while a block was put into use.
			l.serve(now)
		}
		if l.isDue(now) {
			l.fetch(ctx)
			continue
		}
		timer := time.NewTimer(max(l.nextWake(now)-now, time.Millisecond))
		select {
		case <-l.wish:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// newest is the block that ends last, nil where none is held.
func (l *Limiter) newest() *holding {
	if held := *l.held.Load(); len(held) > 0 {
		return held[len(held)-1]
	}
	return nil
}

// isDue says whether to ask for a block now: somebody waits, or the newest block
// runs low or old and is in use.
func (l *Limiter) isDue(now time.Duration) bool {
	if l.client.machine.Away() {
		l.abandon()
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case now < l.mu.quiet:
		return false
	case now < l.mu.refusal.until:
		// Somebody who wants less than was refused may be lucky, if it is his turn.
		return len(l.mu.queue) > 0 && l.mu.queue[0].need < l.mu.refusal.amount
	case len(l.mu.queue) > 0 && l.mu.queue[0].patient:
		return true
	case now < l.mu.refusal.gather:
		return false
	case len(l.mu.queue) > 0 || l.drained:
		return true
	}
	h := l.newest()
	return h != nil && h.Used() > 0 && h.Due(now)
}

// nextWake is when something is to be done at the latest.
func (l *Limiter) nextWake(now time.Duration) time.Duration {
	next := now + idleWake
	held := *l.held.Load()
	soon := func(at time.Duration) {
		if now < at {
			next = min(next, at)
		}
	}
	for _, h := range held {
		soon(h.Half())
		soon(h.retire)
		soon(h.End())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.queue) > 0 || len(held) > 0 || l.drained {
		soon(l.mu.quiet)
		soon(l.mu.refusal.until)
		soon(l.mu.refusal.gather)
	}
	return next
}

// retire closes the blocks that are over: near their end, spent, or not needed.
// While the client is away they are good until their very end.
func (l *Limiter) retire(ctx context.Context, now time.Duration) {
	held := *l.held.Load()
	var kept, gone []*holding
	away := l.client.machine.Away()
	for _, h := range held {
		spent := h.Left() == 0 && (h.unsettled.Load() == 0 || len(held) > holdingsMax)
		unused := now >= h.Half() && h.Used() == 0
		if now >= h.End() || spent || !away && (now >= h.retire || unused) {
			gone = append(gone, h)
			l.drained = spent && h == l.newest() || l.drained
		} else {
			kept = append(kept, h)
		}
	}
	if len(gone) == 0 {
		return
	}
	l.observe(now)
	l.held.Store(&kept)
	for _, h := range gone {
		delete(l.spent, h)
		// Not to be cut short when the limiter is closed: it has a deadline.
		settling := context.WithoutCancel(ctx)
		l.joined.Go(func() { l.settle(settling, h) })
	}
}

// observe tells the size what was spent since.
func (l *Limiter) observe(now time.Duration) {
	var spent int64
	for _, h := range *l.held.Load() {
		used := h.Used()
		spent += max(0, used-l.spent[h])
		l.spent[h] = used
	}
	l.size.Observe(now, spent)
}

// fetch asks for a block, and for a smaller one where it was too large.
func (l *Limiter) fetch(ctx context.Context) {
	l.observe(l.client.clock.Now())
	l.drained = false
	for {
		q := l.next()
		n := q.request.Charges[0].Amount
		// Callers have their own patience; a block is worth waiting for.
		bounded, cancel := context.WithTimeout(ctx, max(l.client.config.Deadline, fetchPatience))
		asking := l.client.question(&q.request)
		answer, err := l.client.authority.Ask(bounded, asking)
		cancel()
		q.again = q.again || err != nil || asking.Repeated()
		if err != nil {
			l.failed(err)
			return
		}
		l.open = nil
		response := answer.GetAcquire()
		l.client.keep(q.request.Client, response.GetFallbacks())
		if response.GetDecision() == quorleasev1.Decision_GRANTED {
			l.install(ctx, q, response)
			return
		}
		if !l.refused(n, response) {
			return
		}
	}
}

// next is what to ask: again what nobody has answered, or for as much as demand
// and those who wait need.
func (l *Limiter) next() *openQuestion {
	now := l.client.clock.Now()
	if q := l.open; q != nil && now-q.asked < localLife {
		return q
	}
	l.mu.Lock()
	var sum, head int64
	for i, w := range l.mu.queue {
		if i == 0 {
			head = w.need
		}
		sum = min(sum+w.need, l.config.BlockMax)
	}
	l.mu.Unlock()
	n := l.size.Next(max(sum, head))
	if l.smaller > 0 {
		n = min(n, l.smaller)
	}
	r := l.request(max(n, head, 1))
	r.Track, r.LeaseID = true, newID()
	l.open = &openQuestion{request: r, asked: now}
	return l.open
}

// install puts a granted block into use.
func (l *Limiter) install(ctx context.Context, q *openQuestion, r *quorleasev1.AcquireResponse) {
	now := l.client.clock.Now()
	ttl := durationOf(r.GetLease().GetTtl())
	n := q.request.Charges[0].Amount
	l.smaller = 0
	l.size.Granted(n, free(r), ttl)
	h := &holding{
		Block: block.New(r.GetLease().GetId(), n, q.asked, ttl),
		lease: Lease{ID: r.GetLease().GetId(), Charges: q.request.Charges, Tracked: true},
	}
	h.retire = h.End() - min((h.End()-h.Start())/10, retireMax)
	if now >= h.retire {
		settling := context.WithoutCancel(ctx)
		l.joined.Go(func() { l.settle(settling, h) })
		if !q.again {
			// Its life is shorter than the way here. To go on asking would be a storm.
			l.failed(errTooShort)
		}
		return
	}
	l.mu.Lock()
	owed := l.mu.owed
	l.mu.owed, l.mu.failure, l.mu.quiet, l.mu.refusal = 0, nil, 0, refusal{}
	if owed > 0 {
		h.Settle(0, owed)
		l.spent[h] = owed
	}
	// Before anybody else can see the block: who came later overtakes nobody.
	l.serveLocked(func(w *waiter) *holding {
		if _, ok := h.Spend(now, w.need); !ok {
			return nil
		}
		if w.returns {
			h.unsettled.Add(1)
		}
		return h
	})
	l.mu.Unlock()
	held := *l.held.Load()
	held = append(held[:len(held):len(held)], h)
	l.held.Store(&held)
	l.told.Store(false)
}

// serve hands out what is held.
func (l *Limiter) serve(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serveLocked(func(w *waiter) *holding {
		if w.returns {
			return l.hold(now, w.need)
		}
		return l.spend(now, w.need)
	})
}

// serveLocked hands tokens to those who wait, in order: nobody overtakes the
// first.
func (l *Limiter) serveLocked(spend func(*waiter) *holding) {
	for len(l.mu.queue) > 0 {
		w := l.mu.queue[0]
		h := spend(w)
		if h == nil {
			return
		}
		l.lineLocked(l.mu.queue[1:])
		w.answer(outcome{from: h})
	}
}

// lineLocked replaces those who wait.
func (l *Limiter) lineLocked(queue []*waiter) {
	l.mu.queue = queue
	l.waiting.Store(int64(len(queue)))
}

// cameBack gives what came back into a block to who waits, if anybody does.
func (l *Limiter) cameBack() {
	if l.waiting.Load() > 0 {
		l.serve(l.client.clock.Now())
	}
}

// refused takes in that n tokens were refused. It is true where less is to be
// asked for at once.
func (l *Limiter) refused(n int64, r *quorleasev1.AcquireResponse) bool {
	left := free(r)
	l.size.Denied(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	least := int64(1)
	if len(l.mu.queue) > 0 {
		least = l.mu.queue[0].need
	}
	d := denialsOf(r.GetDenials())[0]
	about := d.Reason == "RATE" || d.Reason == "EXCEEDS_BURST" || d.Reason == "DEBT"
	// Where it is about the amount a smaller one may be granted, or sooner.
	if n > least && about {
		l.smaller = n / 2
		if left >= 0 {
			l.smaller = min(l.smaller, left)
		}
		l.smaller = max(l.smaller, least)
		return true
	}
	if !about {
		n = 1
	}
	l.smaller = 0
	wait := failopen.Jitter(d.RetryAfter)
	switch {
	case d.Never:
		wait = neverPause
	case wait <= 0:
		// A node that names no time must not be asked in a tight loop.
		wait = shortPause
	}
	l.mu.failure, l.mu.quiet = nil, 0
	now := l.client.clock.Now()
	l.mu.refusal = refusal{denial: d, amount: n, until: now + wait, gather: now + max(wait, shortPause)}
	l.dismissLocked()
	return false
}

// dismissLocked answers those whom the refusal answers.
func (l *Limiter) dismissLocked() {
	kept := l.mu.queue[:0:0]
	for _, w := range l.mu.queue {
		switch {
		case w.need < l.mu.refusal.amount:
			kept = append(kept, w)
		case w.patient && !l.mu.refusal.denial.Never:
			w.hint(l.mu.refusal)
			kept = append(kept, w)
		default:
			w.answer(outcome{denied: true, denial: l.mu.refusal.denial})
		}
	}
	l.lineLocked(kept)
}

// failed takes in that there is no answer: nobody's, or an error that is one.
func (l *Limiter) failed(err error) {
	now := l.client.clock.Now()
	if errors.Is(err, context.Canceled) {
		// The limiter is being closed, which gives back what may have been granted.
		return
	}
	if errors.Is(err, ErrUnanswered) {
		l.mu.Lock()
		l.mu.quiet, l.mu.failure = now+authority.ElectionPause(), nil
		l.mu.Unlock()
		l.abandon()
		return
	}
	l.open = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.quiet, l.mu.failure = now+neverPause, err
	for _, w := range l.mu.queue {
		w.answer(outcome{err: err})
	}
	l.lineLocked(nil)
}

// abandon lets those who wait decide by themselves.
func (l *Limiter) abandon() {
	l.mu.Lock()
	queue := l.mu.queue
	l.lineLocked(nil)
	l.mu.Unlock()
	for _, w := range queue {
		if w.reserved {
			l.local(w.need)
		}
		w.answer(outcome{})
	}
}

// free is what a bucket has left, -1 where the answer does not say.
func free(r *quorleasev1.AcquireResponse) int64 {
	if list := r.GetRemaining(); len(list) == 1 {
		return max(0, list[0].GetTokens())
	}
	return -1
}
