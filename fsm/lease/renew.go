package lease

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// Renewals are for a millisecond to a day.
const (
	minRenewal = int64(time.Millisecond)
	maxRenewal = int64(24 * time.Hour)
)

// Renew prolongs the time to settle, and never the time to spend (T12).
func (b *Book) Renew(op *logv1.Renew) (*logv1.Result, error) {
	switch {
	case op.GetTtl() < minRenewal || op.GetTtl() > maxRenewal:
		return nil, refuse.Field("ttl", "%v: must be from %v to %v",
			time.Duration(op.GetTtl()), time.Duration(minRenewal), time.Duration(maxRenewal))
	case op.GetSequence() == 0:
		return nil, refuse.Field("sequence", "0: must be positive")
	}
	l, err := b.ownLease(op.GetLeaseId(), op.GetOwner())
	if err != nil {
		return nil, err
	}
	used, err := match(l, op.GetUsed())
	if err != nil {
		return nil, err
	}
	if _, err := Session(op.GetSession()); err != nil {
		return nil, err
	}
	content := sumRenewal(l, op, used)
	switch {
	case op.GetSequence() == l.Sequence && content == l.Renewed:
		return leaseResult(b.answer(l, true)), nil
	case op.GetSequence() == l.Sequence:
		return nil, Conflict(l, fmt.Sprintf("renewal %d had other content", l.Sequence))
	case !l.Open():
		return nil, Conflict(l, "has ended")
	case op.GetSequence() < l.Sequence:
		return nil, Conflict(l, fmt.Sprintf("renewal %d came after renewal %d", op.GetSequence(), l.Sequence))
	}
	b.Heard(op.GetSession(), op.GetOwner(), op.GetConnection())
	l = b.state.TouchLease(b.bookProgress(l, used))
	l.Sequence, l.Renewed = op.GetSequence(), content
	b.state.RenewLease(l, max(l.SettleUntil, b.state.Now+bucket.Instant(op.GetTtl())))
	return leaseResult(b.answer(l, false)), nil
}

func sumRenewal(l *state.Lease, op *logv1.Renew, used reported) uint64 {
	sum := digest.New(tagUsage)
	sum.Int(op.GetTtl())
	sum.Word(sumUsage(l, used))
	return sum.Value()
}
