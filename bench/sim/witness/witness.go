// Package witness looks at the log with more patience than anybody inside can have.
package witness

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/replica"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Witness applies the log one operation at a time, and looks at the state before
// and after each (G3, G7).
type Witness struct {
	judge   *judge.Judge
	Replica *replica.Replica
	// Stats count what was looked at.
	Stats *tally.Stats
}

// New is a witness who has seen nothing.
func New(j *judge.Judge, kind trap.Kind) *Witness {
	return &Witness{judge: j, Replica: replica.New(kind)}
}

// See takes an entry that was committed.
func (v *Witness) See(c *judge.Committed) {
	r := v.Replica
	v.outlived(c, func() { v.sweep(c.Index, &logv1.Entry{Stamp: c.Entry.GetStamp(), Wall: c.Entry.GetWall()}) })
	for i, op := range c.Entry.GetOperations() {
		if op.GetAskEscrow() != nil && c.Results[i].GetEscrow().GetOutcome() != logv1.EscrowResult_OUTCOME_GRANTED {
			// It is denied for what stood before it in the entry, and changes nothing.
			continue
		}
		one := &logv1.Entry{Operations: []*logv1.Operation{op}}
		acquire := op.GetAcquire()
		if acquire == nil {
			r.Take(c.Index, one)
			v.sweep(c.Index, &logv1.Entry{})
			continue
		}
		before := r.Hash()
		peek, _ := r.Peek(0, acquire)
		answer := r.Take(c.Index, one)[0].GetAcquire()
		switch {
		case answer == nil || answer.GetRepeated():
		case answer.GetGranted():
			v.granted(acquire, peek, answer)
		default:
			v.denied(acquire, answer, before)
		}
		v.sweep(c.Index, &logv1.Entry{})
	}
}

// sweep lets happen what is due, so that what is left is an operation's doing. What
// ends may let something else end: a lease its key.
func (v *Witness) sweep(index uint64, entry *logv1.Entry) {
	for {
		before := v.Replica.Hash()
		v.Replica.Take(index, entry)
		if v.Replica.Hash() == before {
			return
		}
		entry = &logv1.Entry{}
	}
}

// granted checks that every charge was debited in full (G3).
func (v *Witness) granted(op *logv1.Acquire, peek, answer *logv1.AcquireResult) {
	in := answer.GetRemaining()
	for i, charge := range op.GetCharges() {
		if v.Replica.Limit(charge.GetLimit()).GetUnlimited() || slices.Contains(answer.GetPaid(), uint32(i)) {
			continue
		}
		var had, left int64
		for k, r := range in {
			if r.GetLimit() == charge.GetLimit() && r.GetDimension() == charge.GetDimension() {
				had, left = peek.GetRemaining()[k].GetTokens(), r.GetTokens()
			}
		}
		if had-left != charge.GetAmount() {
			v.judge.Complain("G3", "charge %d of %v took %d", i, op, had-left)
		}
	}
}

// denied checks that nothing has changed, and that the wait is honest: whoever is
// alone, or comes when only those are there who wait now, and waits as long is
// granted; alone not a millisecond earlier (G7).
func (v *Witness) denied(op *logv1.Acquire, answer *logv1.AcquireResult, before uint64) {
	if v.Replica.Hash() != before {
		v.judge.Complain("G7", "the denial of %v changed the state", op)
	}
	wait := bucket.Instant(0)
	for _, d := range answer.GetDenials() {
		if d.GetRetryAfter() == 0 || d.GetReason() == logv1.Reason_REASON_KEY_LIMIT {
			return
		}
		wait = max(wait, bucket.Instant(d.GetRetryAfter()))
	}
	try := func(after bucket.Instant, op *logv1.Acquire) bool {
		later, err := v.Replica.Peek(v.Replica.Now()+after, op)
		return err == nil && later.GetGranted()
	}
	honest, early := op, wait-bucket.Instant(time.Millisecond)
	if slices.ContainsFunc(op.GetCharges(), func(c *logv1.Charge) bool { return c.GetKeep() > 0 }) {
		// Others wait. Where there is never enough beside what is kept for them they have
		// to go first. And for a moment there may be, while parts of other classes fill.
		early = 0
		if !try(forGood, op) {
			honest = proto.CloneOf(op)
			for _, c := range honest.GetCharges() {
				c.Keep = 0
			}
		}
	}
	if wait == 0 || !try(wait, honest) {
		v.judge.Complain("G7", "%v waits %v and is denied again", op, time.Duration(wait))
	}
	if early > 0 && try(early, honest) {
		v.judge.Complain("G7", "%v was told to wait %v and would be granted earlier", op, time.Duration(wait))
	}
}

// forGood is after how long what has not come never does.
const forGood = bucket.Instant(30 * 24 * time.Hour)
