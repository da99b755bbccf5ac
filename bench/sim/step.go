package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// stepwise says whether a trap is about single operations.
func (t Trap) stepwise() bool {
	return t == NoTombstone || t == CostlyDenial || t == EarlyHint || t == HalfGrant || t == DoubleRefund
}

// step applies an entry with one operation as a trap would have it.
func (r *replica) step(index uint64, entry *logv1.Entry) *logv1.Result {
	op := entry.GetOperations()[0]
	release, acquire := op.GetRelease(), op.GetAcquire()
	switch {
	case r.trap == NoTombstone && release != nil && !r.known(release.GetLeaseId()):
		return unknownLease(release.GetLeaseId())
	case r.trap == HalfGrant && len(acquire.GetCharges()) > 1:
		return r.half(index, entry, acquire)
	}
	results, _ := r.Apply(index, entry)
	r.note(entry, results)
	result := results[0]
	for _, d := range result.GetAcquire().GetDenials() {
		switch {
		case r.trap == CostlyDenial:
			r.adjust(index, &logv1.Adjust{Limit: d.GetLimit(), Key: d.GetKey(), Dimension: d.GetDimension()}, -1)
		case r.trap == EarlyHint && d.GetRetryAfter() > 0:
			d.RetryAfter = max(1, d.GetRetryAfter()-int64(time.Millisecond))
		}
	}
	if lease := result.GetLease(); r.trap == DoubleRefund && !lease.GetRepeated() {
		for _, s := range lease.GetSettlements() {
			if s.GetRefunded() > 0 {
				r.adjust(index, &logv1.Adjust{Limit: s.GetLimit(), Key: s.GetKey(), Dimension: s.GetDimension()},
					s.GetRefunded())
			}
		}
	}
	return result
}

// half grants every charge and debits the first.
func (r *replica) half(index uint64, entry *logv1.Entry, acquire *logv1.Acquire) *logv1.Result {
	first := &logv1.Acquire{
		LeaseId: acquire.GetLeaseId(), Client: acquire.GetClient(), Class: acquire.GetClass(), Track: acquire.GetTrack(),
		Charges: acquire.GetCharges()[:1],
	}
	results, _ := r.Apply(index, &logv1.Entry{
		Stamp: entry.GetStamp(), Wall: entry.GetWall(), Operations: []*logv1.Operation{{
			Kind: &logv1.Operation_Acquire{Acquire: first},
		}},
	})
	if answer := results[0].GetAcquire(); answer.GetGranted() {
		answer.Charges = acquire.GetCharges()
	}
	return results[0]
}

func (r *replica) adjust(index uint64, op *logv1.Adjust, tokens int64) {
	op.Change, op.Reason = &logv1.Adjust_Add{Add: tokens}, "a mistake that is seeded"
	r.Apply(index, &logv1.Entry{Operations: []*logv1.Operation{{Kind: &logv1.Operation_Adjust{Adjust: op}}}})
}
