package check

import (
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// escrow is what a node was given, as the log tells it. It is kept until it is given
// back, so that a machine that credits more than there was is found out.
type escrow struct {
	bucket Bucket
	// left is what was neither given back nor paid a lease.
	left int64
	// ends is when it is worth nothing any more, in authority time.
	ends int64
	// void: the limit has changed since. It can be given back, and pays for nothing.
	void bool
	// at is where what can be spent of it is noted.
	at spot
}

// escrowName names one, for a map.
func escrowName(id *logv1.EscrowID) string {
	var b strings.Builder
	b.WriteString(id.GetNode())
	for _, n := range [...]uint64{id.GetBoot(), id.GetSequence()} {
		b.WriteByte(0)
		for range 8 {
			b.WriteByte(byte(n))
			n >>= 8
		}
	}
	return b.String()
}

// asked debits what was moved to a node: whatever becomes of it, it is as good as
// granted.
func (r *Replay) asked(op *logv1.AskEscrow, answer *logv1.EscrowResult) {
	if answer.GetOutcome() != logv1.EscrowResult_OUTCOME_GRANTED || answer.GetRepeated() {
		return
	}
	bucket := Bucket{op.GetLimit(), op.GetKey(), op.GetDimension()}
	given := &escrow{bucket: bucket, left: answer.GetAmount(), ends: r.now + answer.GetLife(), at: spot{at: -1}}
	r.escrows[escrowName(op.GetId())] = given
	if r.overridden(bucket.Limit, bucket.Key) {
		return
	}
	given.at = r.spends.lent(bucket, answer.GetAmount(), r.now, time.Duration(answer.GetLife()))
	r.debits.Debit(bucket, answer.GetAmount(), r.now)
	r.history.Granted[bucket.Limit] += answer.GetAmount()
}

// paid notes that escrow has paid a charge, and says whether it could: what was moved
// to a node is debited already, and can't be used twice.
func (r *Replay) paid(c *logv1.Charge) bool {
	e := r.escrows[escrowName(c.GetEscrow())]
	bucket := Bucket{c.GetLimit(), c.GetKey(), c.GetDimension()}
	if e == nil || e.bucket != bucket || e.left < c.GetAmount() || e.ends <= r.now || e.void {
		return false
	}
	e.left -= c.GetAmount()
	r.spends.less(e.at, c.GetAmount())
	return true
}

// returned gives back what can come back of escrow, once: what was not given, or has
// ended, gives nothing.
func (r *Replay) returned(op *logv1.ReturnEscrow) {
	for _, one := range op.GetReturns() {
		name := escrowName(one.GetId())
		e := r.escrows[name]
		if e == nil {
			continue
		}
		delete(r.escrows, name)
		back := min(one.GetUnspent(), e.left)
		if back > 0 {
			r.spends.less(e.at, back)
		}
		if back <= 0 || e.ends <= r.now || r.overridden(e.bucket.Limit, e.bucket.Key) {
			continue
		}
		r.debits.Refund(e.bucket, back, r.now)
		r.history.Granted[e.bucket.Limit] -= back
	}
}
