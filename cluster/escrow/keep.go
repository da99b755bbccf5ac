package escrow

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Propose proposes an operation that is good for nothing after within, and calls done
// once with what became of it, possibly before it returns.
type Propose func(op *logv1.Operation, within time.Duration, done func(*logv1.Result, error))

// stepEvery is how often a wallet steps at most: what comes up meanwhile shares an
// entry, and nobody waits for it.
const stepEvery = 10 * time.Millisecond

// Keep steps until stop is closed, and proposes what is to be.
func (w *Wallet) Keep(stop <-chan struct{}, propose Propose) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-stop:
			return
		case <-w.Wake():
		case <-timer.C:
		}
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		work, next := w.Step()
		for _, r := range work.Returns {
			w.GiveBack(r, propose)
		}
		for _, op := range work.Asks {
			propose(&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: op}}, w.lifeOf(op),
				func(r *logv1.Result, err error) { w.Answered(op, r, err) })
		}
		pause.Reset(stepEvery)
		timer.Reset(next)
	}
}

// returnWithin is how long a return may be under way.
const returnWithin = 5 * time.Second

// GiveBack proposes a return.
func (w *Wallet) GiveBack(r *Return, propose Propose) {
	propose(r.Operation, returnWithin, func(_ *logv1.Result, err error) { w.Returned(r, err) })
}

// lifeOf is how long an ask is worth anything.
func (w *Wallet) lifeOf(op *logv1.AskEscrow) time.Duration {
	if b := w.books.Load().byLimit[op.GetLimit()]; b != nil {
		return b.terms.Load().Life
	}
	return stepEvery
}
