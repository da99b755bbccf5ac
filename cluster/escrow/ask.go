package escrow

import (
	"container/heap"
	"errors"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// ask is one ask whose fate is not known.
type ask struct {
	op  *logv1.AskEscrow
	at  *holding
	pot int
	// sent is when it was first sent: life counts from there (T8). until is when
	// whatever it brings has ended.
	sent, until time.Duration
	// again is when to send it again, under the same id; 0: it is under way.
	again time.Duration
	// doubtful: one that was sent may have arrived.
	doubtful bool
}

const (
	// minPart of the burst is the least to ask for.
	minPart = 64
	// A pot that got nothing asks again after pauseMin, twice that, up to pauseMax.
	pauseMin, pauseMax = 250 * time.Millisecond, 2 * time.Second
	// driftPart of a life is what clocks may differ by: a holder stops as much sooner.
	driftPart = 1000
)

// askLocked asks for what a pot needs.
func (w *Wallet) askLocked(now time.Duration, h *holding, i int, work *Work) {
	p, terms := &h.pots[i], h.book.terms.Load()
	amount := p.demand.needs(2 * w.config.Failover)
	if p.youngestLocked(now) >= w.lowLife(terms.Life) {
		amount -= p.leftLocked(now)
	}
	burst := h.burstLocked(i)
	amount = min(burst, max(amount, 2*p.demand.largest, burst/minPart, 1))
	w.sequence++
	a := &ask{at: h, pot: i, sent: now, until: now + terms.Life}
	a.op = &logv1.AskEscrow{
		Id: w.id(w.sequence), Limit: h.book.limit, Key: h.key,
		Dimension: terms.Dimensions[i/terms.classes()].Name, Class: terms.className(i), Amount: amount,
	}
	p.ask = a
	w.asks[w.sequence] = a
	work.Asks = append(work.Asks, a.op)
}

// chaseLocked sends an ask of unknown fate again under the same id, and forgets it when
// what it may have brought has ended. It returns when that is next.
func (w *Wallet) chaseLocked(now time.Duration, p *pot, work *Work) time.Duration {
	a := p.ask
	switch {
	case now >= a.until:
		w.outcome.Lost++
		delete(w.asks, a.op.GetId().GetSequence())
		p.ask = nil
		return now
	case a.again == 0:
		return a.until
	case now < a.again:
		return min(a.again, a.until)
	}
	a.again = 0
	work.Asks = append(work.Asks, a.op)
	return a.until
}

// Answered tells what became of an ask that was proposed. Tokens come from Applied
// only (T10).
func (w *Wallet) Answered(op *logv1.AskEscrow, result *logv1.Result, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.asks[op.GetId().GetSequence()]
	if a == nil {
		return
	}
	now := w.config.Elapsed()
	switch {
	case errors.Is(err, outcome.ErrUnknown) || err != nil && a.doubtful:
		a.again, a.doubtful = now+pauseMin, true
		a.at.shard.mu.Lock()
		w.queueLocked(a.at)
		a.at.shard.mu.Unlock()
	case err != nil:
		w.closeLocked(now, a, &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_CONTENDED}, true)
	case result.GetEscrow().GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED:
	case result.GetEscrow() == nil:
		w.closeLocked(now, a, &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_NONE}, false)
	default:
		w.closeLocked(now, a, result.GetEscrow(), false)
	}
}

// closeLocked ends an ask that brought nothing. failed: nobody answered it.
func (w *Wallet) closeLocked(now time.Duration, a *ask, result *logv1.EscrowResult, failed bool) {
	delete(w.asks, a.op.GetId().GetSequence())
	s := a.at.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &a.at.pots[a.pot]
	if p.ask == a {
		p.ask = nil
	}
	p.warm = p.warm && failed
	switch result.GetOutcome() {
	case logv1.EscrowResult_OUTCOME_NONE, logv1.EscrowResult_OUTCOME_GONE:
		w.outcome.None++
		p.noTurn = a.at.book.turn.Load()
	default:
		w.outcome.Contended++
		wait := time.Duration(result.GetWait())
		if p.pause = min(pauseMax, max(pauseMin, 2*p.pause)); failed {
			// A new leader will be there soon.
			p.pause = pauseMin
		}
		if wait <= 0 {
			wait = p.pause - time.Duration(w.random.Int64N(int64(p.pause/4)))
		}
		p.notBefore = now + wait
	}
	w.queueLocked(a.at)
}

// Applied tells of an entry that this node has applied: its operations with their
// results, in order. What the entry voids is told afterwards, by Void and Configure.
func (w *Wallet) Applied(ops []*logv1.Operation, results []*logv1.Result) {
	w.applied.Store(int64(w.config.Elapsed()))
	for i, op := range ops {
		switch kind := op.GetKind().(type) {
		case *logv1.Operation_AskEscrow:
			if w.mine(kind.AskEscrow.GetId()) {
				w.install(kind.AskEscrow, results[i].GetEscrow())
			}
		case *logv1.Operation_Acquire:
			w.paid(kind.Acquire, results[i].GetAcquire())
		}
	}
}

// install takes what an ask brought.
func (w *Wallet) install(op *logv1.AskEscrow, result *logv1.EscrowResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.asks[op.GetId().GetSequence()]
	if a == nil {
		return
	}
	now := w.config.Elapsed()
	if result.GetOutcome() != logv1.EscrowResult_OUTCOME_GRANTED {
		if result != nil {
			w.closeLocked(now, a, result, false)
		}
		return
	}
	life := time.Duration(result.GetLife())
	w.installLocked(now, a, result.GetAmount(), a.sent+life-(life+driftPart-1)/driftPart)
}

// installLocked makes a portion of what an ask brought, which ends at until.
func (w *Wallet) installLocked(now time.Duration, a *ask, amount int64, until time.Duration) {
	sequence := a.op.GetId().GetSequence()
	delete(w.asks, sequence)
	w.outcome.Granted++
	h := a.at
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	p := &h.pots[a.pot]
	if p.ask == a {
		p.ask = nil
	}
	p.warm, p.pause, p.notBefore = false, 0, 0
	one := &portion{sequence: sequence, unspent: amount, since: now, until: until, at: h, pot: a.pot, born: h.voids}
	if now >= until {
		return
	}
	w.ledger[sequence] = one
	heap.Push(&w.alarms, alarm{at: until, sequence: sequence})
	if h.dropped || w.closed.Load() {
		// The limit has changed on the way, or the process is about to end.
		one.void = true
		w.backLocked(now, one)
		w.nudge()
		return
	}
	p.portions = append(p.portions, one)
	w.queueLocked(h)
}
