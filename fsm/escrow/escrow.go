// Package escrow moves tokens from buckets to nodes, which grant them from memory
// without an entry, takes back what they did not spend, and pays leases with them. A
// record says what a node holds of one bucket for one class, and until when.
//
// What a record's tokens were spent on nobody says: they count as spent when it ends.
// So nothing of it is ever credited but what its own node gives back, once, before its
// end (T9, T11); and until then all of it counts as outstanding (T40).
//
// The package is pure, and works on a state that it is given.
package escrow

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refund"
	"github.com/quorlease/quorlease/fsm/state"
)

// Bucket names a bucket.
type Bucket struct {
	Limit, Dimension uint32
	Key              string
}

// Book works on the escrow of a state. One goroutine calls it, that which applies
// entries.
type Book struct {
	state   *state.State
	effects *effect.List
	// promised are the buckets of acquires that the entry has denied, with the time
	// after which their callers come back. It is nil where the entry asks for nothing.
	promised map[Bucket]int64
}

// New is the book of a state. It adds to effects.
func New(s *state.State, effects *effect.List) *Book { return &Book{state: s, effects: effects} }

// Begin begins an entry.
func (b *Book) Begin(operations []*logv1.Operation) {
	b.promised = nil
	for _, op := range operations {
		if _, asks := op.GetKind().(*logv1.Operation_AskEscrow); asks {
			b.promised = make(map[Bucket]int64)
			return
		}
	}
}

// Promise notes that the entry has denied somebody who comes back after wait, and finds
// the bucket then as he was told: no ask that stands behind it takes from it (T46). A
// denial changes nothing (G7), so that it is no part of the state; between entries the
// leader knows of it.
func (b *Book) Promise(one Bucket, wait int64) {
	if b.promised != nil {
		b.promised[one] = max(b.promised[one], wait)
	}
}

// Return takes back what was not spent, once. The error is a *refuse.Refused.
func (b *Book) Return(op *logv1.ReturnEscrow) (*logv1.Result, error) {
	if err := checkReturn(op); err != nil {
		return nil, err
	}
	for _, r := range op.GetReturns() {
		e := b.find(record.EscrowIDOf(r.GetId()))
		if e == nil {
			// It was returned before, or has ended: then it counts as spent.
			continue
		}
		one, tokens := e.Escrow, min(r.GetUnspent(), e.Left())
		b.state.EndEscrow(e)
		refund.Give(b.state, refund.Part{
			LimitID: one.LimitID, DimensionID: one.DimensionID, Key: one.KeyName, Class: one.Class,
			Tokens: tokens, Took: one.Took, TookUnit: one.TookUnit,
		})
		if tokens > 0 {
			// Somebody may wait for them.
			b.effects.Add(effect.Effect{
				Kind: effect.EscrowReturned, Limit: b.state.LimitByID(one.LimitID).Name, Key: one.KeyName,
			})
		}
	}
	return &logv1.Result{Kind: &logv1.Result_Done{Done: &logv1.Done{}}}, nil
}

// Sweep takes records out whose time is over, at most as many. What was not given back
// is spent.
func (b *Book) Sweep(most int) {
	for range most {
		e, at := b.state.Ledger.First()
		if at > b.state.Now {
			return
		}
		b.state.EndEscrow(e)
	}
}

// Void voids what nodes hold of a key that feedback closes or slows, and says whether
// there was anything.
func Void(s *state.State, lim *state.Limit, key string) (voided bool) {
	// Each is voided for itself: the order does not matter.
	for _, e := range s.Ledger.OfKey(lim.ID, key) {
		if !holds(s, e) {
			continue
		}
		voided = true
		one := e.Escrow
		one.Void = true
		s.Ledger.Set(e, one)
	}
	return voided
}

// holds says that a node may spend a record's tokens: it has not ended, and is not void.
// That the limit has changed is seen by its version: a change of one with a million keys
// writes to no record.
func holds(s *state.State, e *ledger.Escrow) bool {
	return s.Now < e.Until && !e.Void && s.LimitByID(e.LimitID).Now().Number == e.Version
}

// find is a record that has not ended, whether or not the sweep has come to it; nil for
// none.
func (b *Book) find(id record.EscrowID) *ledger.Escrow {
	if e := b.state.Ledger.Find(id); e != nil && b.state.Now < e.Until {
		return e
	}
	return nil
}

// Pays finds the escrow that a charge names, where it can pay all of the charge; nil
// where the bucket has to.
func (b *Book) Pays(c *logv1.Charge, of Bucket, class string) *ledger.Escrow {
	if c.GetEscrow() == nil {
		return nil
	}
	e := b.state.Ledger.Find(record.EscrowIDOf(c.GetEscrow()))
	if e == nil || !holds(b.state, e) || e.Class != class || e.Left() < c.GetAmount() ||
		of != (Bucket{Limit: e.LimitID, Dimension: e.DimensionID, Key: e.KeyName}) {
		return nil
	}
	return e
}

// Pay takes n tokens from a record that Pays has found, and says what of them came from
// the class's own sub-bucket, in units of the limit now: as much as there is, since that
// is where a refund goes first (T20).
func (b *Book) Pay(e *ledger.Escrow, n int64) (took int64) {
	one := e.Escrow
	one.Paid += n
	// It fits: no more than the burst was ever given.
	took = min(one.Took, n*one.TookUnit)
	one.Took -= took
	b.state.Ledger.Set(e, one)
	return took
}

func result(answer *logv1.EscrowResult) (*logv1.Result, error) {
	return &logv1.Result{Kind: &logv1.Result_Escrow{Escrow: answer}}, nil
}

func outcome(one logv1.EscrowResult_Outcome) (*logv1.Result, error) {
	return result(&logv1.EscrowResult{Outcome: one})
}

func contended(wait int64) (*logv1.Result, error) {
	return result(&logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_CONTENDED, Wait: wait})
}

// until is how long it is to an instant, at least a nanosecond.
func (b *Book) until(at bucket.Instant) int64 { return max(1, int64(at-b.state.Now)) }
