package escrow_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// judge says whether an answer is as it has to be, and books it.
func (w *model) judge(op *logv1.Operation, result *logv1.Result) {
	w.Helper()
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_AskEscrow:
		w.judgeAsk(kind.AskEscrow, result.GetEscrow())
	case *logv1.Operation_ReturnEscrow:
		for _, r := range kind.ReturnEscrow.GetReturns() {
			b := w.books[nameOf(r.GetId())]
			if b == nil || b.gone || w.now >= b.until {
				continue
			}
			// T9, T11: void or not it comes back, once, before its end.
			b.gone = true
			back := min(r.GetUnspent(), b.left)
			b.left -= back
			w.given += back
			w.level.Add(w.level, big.NewRat(back, 1))
			w.clamp(w.limit.GetDimensions()[0].GetBurst())
		}
	case *logv1.Operation_ApplyLimits:
		if len(result.GetLimits().GetChanges()) == 0 {
			return
		}
		w.limit = kind.ApplyLimits.GetLimits()[0]
		w.clamp(w.limit.GetDimensions()[0].GetBurst())
		for _, b := range w.books {
			b.void = true
			w.mostUntil = max(w.mostUntil, b.until)
		}
	case *logv1.Operation_Acquire:
		w.judgeAcquire(kind.Acquire, result.GetAcquire())
	}
}

func (w *model) judgeAsk(op *logv1.AskEscrow, r *logv1.EscrowResult) {
	w.Helper()
	id := nameOf(op.GetId())
	b := w.books[id]
	known := b != nil && !b.gone && !b.void && w.now < b.until
	switch {
	case r == nil:
		w.Fatalf("%v was refused", op)
	case known != r.GetRepeated():
		w.Fatalf("T7: %v was answered %v, known %v", op, r, known)
	case known && (r.GetAmount() != b.amount || r.GetLife() != int64(b.until-w.now)):
		w.Fatalf("T8: %v was answered %v, want %d for %v", op, r, b.amount, b.until-w.now)
	case known || r.GetOutcome() != logv1.EscrowResult_OUTCOME_GRANTED:
		return
	case b != nil:
		w.Fatalf("T7: %v is given once more: %v", op, r)
	case r.GetLife() != w.limit.GetEscrow() || r.GetAmount() < 1 || r.GetAmount() > op.GetAmount():
		w.Fatalf("%v: %v", op, r)
	}
	w.take(r.GetAmount())
	w.books[id] = &book{
		class: op.GetClass(), amount: r.GetAmount(), left: r.GetAmount(), until: w.now + time.Duration(r.GetLife()),
	}
}

func (w *model) judgeAcquire(op *logv1.Acquire, r *logv1.AcquireResult) {
	w.Helper()
	if !r.GetGranted() || r.GetRepeated() {
		return
	}
	n := op.GetCharges()[0].GetAmount()
	if len(r.GetPaid()) == 0 {
		w.take(n)
		w.spent += n
		return
	}
	b := w.books[nameOf(op.GetCharges()[0].GetEscrow())]
	switch {
	case b == nil || b.gone || b.void || w.now >= b.until || b.left < n:
		w.Fatalf("T41: %v is paid at %v from %+v", op, w.now, b)
	case b.class != op.GetClass():
		w.Fatalf("T45: %v is paid from %+v", op, b)
	}
	b.left -= n
	w.spent += n
}

// x is how much may be out under a limit.
func x(limit *logv1.Limit) int64 {
	d := limit.GetDimensions()[0]
	return d.GetAmount() * limit.GetEscrow() / d.GetInterval()
}

// bounds checks what is out (T40), and how many records there are (G10).
func (w *model) bounds(in *fsm.Inspection) {
	w.Helper()
	out, records := int64(0), 0
	for _, b := range w.books {
		if !b.gone && w.now < b.until {
			out += b.amount
			records++
		}
	}
	if w.now >= w.mostUntil {
		w.most = 0
	}
	w.most = max(w.most, x(w.limit))
	if out > w.most {
		w.Fatalf("T40: %d are out at %v, at most %d", out, w.now, w.most)
	}
	seen, held := int64(0), 0
	for _, o := range in.Escrow {
		seen += o.Tokens
		held += o.Records
		if o.Records > 8 {
			w.Fatalf("G10: %+v", o)
		}
	}
	if seen != out || held != records || w.m.Counts().Escrows != held {
		w.Fatalf("%d tokens in %d records, want %d in %d of %d", seen, held, out, records, w.m.Counts().Escrows)
	}
}

// promised says whether the last caller that the entry has denied is granted when he comes
// back as he was told, where only asks and returns stand behind him (T46, G7).
func (w *model) promised(operations []*logv1.Operation) {
	w.Helper()
	results := w.log[len(w.log)-1].results
	for i := len(operations) - 1; i >= 0; i-- {
		switch a := operations[i].GetAcquire(); {
		case a == nil && operations[i].GetApplyLimits() == nil:
			continue
		case a == nil || len(results[i].GetAcquire().GetDenials()) == 0 || i == len(operations)-1:
			return
		}
		wait := results[i].GetAcquire().GetDenials()[0].GetRetryAfter()
		if wait == 0 {
			return
		}
		later := fsmtest.Restored(w.T, w.m)
		again := proto.CloneOf(operations[i].GetAcquire())
		again.Charges[0].Escrow = nil
		answers, _ := later.Apply(later.Index()+1, &logv1.Entry{
			Stamp: int64(w.now) + wait, Operations: []*logv1.Operation{fsmtest.Operation(again)},
		})
		if !answers[0].GetAcquire().GetGranted() {
			w.Fatalf("T46: %v was told %v at %v, and then %v", again, time.Duration(wait), w.now, answers[0])
		}
		return
	}
}

// TestNodesNeverOverspend lets nodes ask, spend, give back, pay, crash, lag and restore
// over a network that loses, repeats and reorders, while the limit changes.
func TestNodesNeverOverspend(t *testing.T) {
	t.Parallel()
	seeds := uint64(24)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("G1_G7_G10_T7_T9_T11_T40_T41_T42_T45_T46_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			w := newModel(t, seed)
			for range 400 {
				w.now += time.Duration(w.random.Int64N(int64(400 * time.Millisecond)))
				for _, p := range w.nodes {
					w.act(p)
					w.catchUp(p)
				}
				w.commit()
			}
			if w.taken == 0 || w.given == 0 {
				t.Errorf("%d taken, %d given back: nothing happened", w.taken, w.given)
			}
		})
	}
}
