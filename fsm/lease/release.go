package lease

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// Release gives a lease back unspent. Of an unknown id it leaves a
// tombstone, so that the acquire that it overtook grants nothing (T23).
func (b *Book) Release(op *logv1.Release) (*logv1.Result, error) {
	id, err := ID(op.GetLeaseId())
	if err == nil {
		err = refuse.Text("owner", op.GetOwner(), 0, check.MaxText)
	}
	if err == nil {
		err = refuse.Text("client", op.GetClient(), 0, check.MaxText)
	}
	if err != nil {
		return nil, err
	}
	l := b.Find(id)
	if l == nil {
		if int64(b.state.Leases()) >= b.state.Caps.GetLeases() {
			return nil, refuse.For(logv1.Refusal_CAUSE_LEASE_LIMIT, "lease_id",
				"%x: is unknown, and there is no room to remember that: %d leases", id, b.state.Caps.GetLeases())
		}
		b.rememberRelease(id, op)
		return nil, notFound(id)
	}
	if l.Unknown || !belongsTo(l, op.GetOwner()) {
		return nil, notFound(id)
	}
	switch l.State {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		return nil, Conflict(l, "was settled")
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return leaseResult(b.answer(l, true)), nil
	case logv1.LeaseState_LEASE_STATE_EXPIRED:
		// Nothing comes back after the end (T28).
		return leaseResult(b.answer(l, false)), nil
	case logv1.LeaseState_LEASE_STATE_UNSPECIFIED, logv1.LeaseState_LEASE_STATE_OPEN:
	}
	l = b.state.TouchLease(l)
	for i := range l.Charges {
		b.free(l, &l.Charges[i])
		b.refund(&l.Charges[i])
	}
	b.state.EndLease(l, logv1.LeaseState_LEASE_STATE_RELEASED, b.state.Now)
	return leaseResult(b.answer(l, false)), nil
}

func (b *Book) rememberRelease(id record.LeaseID, op *logv1.Release) {
	b.state.AddLease(record.Lease{
		ID: id, State: logv1.LeaseState_LEASE_STATE_RELEASED, Unknown: true,
		Owner: op.GetOwner(), Client: op.GetClient(), ForgetAt: b.state.Now + state.TombstoneLife,
	})
}
