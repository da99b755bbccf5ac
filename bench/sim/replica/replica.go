// Package replica is the real state machine, and what a trap makes of it.
package replica

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Replica is the real state machine, and what a trap makes of it.
type Replica struct {
	*fsm.Machine
	trap trap.Kind
	// View is what some traps decide by: the leases that the replica has seen
	// granted, by their ids, and until when they may be settled.
	View map[string]bucket.Instant
	// Effects are those of the last entry.
	Effects []effect.Effect
}

// New is an empty replica.
func New(kind trap.Kind) *Replica {
	return &Replica{Machine: fsm.New(), trap: kind, View: make(map[string]bucket.Instant)}
}

// Frozen is a replica's snapshot. It is written out when somebody wants to read
// it, which may be long after, while entries were applied.
type Frozen struct {
	handle *fsm.Snapshot
	file   []byte
	view   map[string]bucket.Instant
}

// Freeze is a snapshot of it.
func (r *Replica) Freeze() *Frozen {
	return &Frozen{handle: r.Snapshot(), view: maps.Clone(r.View)}
}

// Thaw is a replica restored from a snapshot.
func Thaw(kind trap.Kind, f *Frozen) (*Replica, error) {
	if f.file == nil {
		var file bytes.Buffer
		if _, err := f.handle.WriteTo(&file); err != nil {
			return nil, fmt.Errorf("write snapshot: %w", err)
		}
		f.file = file.Bytes()
		f.handle.Release()
	}
	machine, err := fsm.Restore(bytes.NewReader(f.file))
	if err != nil {
		return nil, fmt.Errorf("restore snapshot: %w", err)
	}
	return &Replica{Machine: machine, trap: kind, View: maps.Clone(f.view)}, nil
}

// Take applies an entry. Where a trap is about single operations, each is applied
// by itself, on every replica alike.
func (r *Replica) Take(index uint64, entry *logv1.Entry) []*logv1.Result {
	if !r.trap.Stepwise() || len(entry.GetOperations()) == 0 {
		results, effects := r.Apply(index, entry)
		r.Effects = effects
		r.note(entry, results)
		return results
	}
	r.Effects = nil
	results := make([]*logv1.Result, len(entry.GetOperations()))
	for i, op := range entry.GetOperations() {
		results[i] = r.step(index, &logv1.Entry{
			Stamp: entry.GetStamp(), Wall: entry.GetWall(), Operations: []*logv1.Operation{op},
		})
	}
	return results
}

func (r *Replica) known(id []byte) bool {
	_, ok := r.View[string(id)]
	return ok
}

// note keeps the view.
func (r *Replica) note(entry *logv1.Entry, results []*logv1.Result) {
	if r.trap != trap.NoTombstone && r.trap != trap.OwnView {
		return
	}
	for i, op := range entry.GetOperations() {
		id := string(op.GetAcquire().GetLeaseId())
		if op.GetAcquire().GetTrack() && results[i].GetAcquire().GetGranted() {
			if _, ok := r.View[id]; !ok {
				r.View[id] = r.Now() + bucket.Instant(results[i].GetAcquire().GetTtl())
			}
		}
		if renew := op.GetRenew(); renew != nil && results[i].GetLease() != nil {
			r.View[string(renew.GetLeaseId())] = r.Now() + bucket.Instant(results[i].GetLease().GetTtl())
		}
	}
}

// UnknownLease is the answer about a lease that nobody knows.
func UnknownLease(id []byte) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Refusal{Refusal: &logv1.Refusal{
		Cause: logv1.Refusal_CAUSE_LEASE_NOT_FOUND, Field: "lease_id", Message: fmt.Sprintf("%x: there is no such lease", id),
	}}}
}

// LeaseAnswer is the answer about a lease in a state.
func LeaseAnswer(state logv1.LeaseState, ttl int64) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Lease{Lease: &logv1.LeaseResult{State: state, Ttl: ttl}}}
}

// Recall answers what concerns a tracked lease from a memory of what was granted, nil where
// it can't (T22). until is when a granted lease ends.
func (r *Replica) Recall(
	memory map[string]*logv1.AcquireResult, op *logv1.Operation,
) (answer *logv1.Result, until int64) {
	if acquire := op.GetAcquire(); acquire != nil {
		known := memory[string(acquire.GetLeaseId())]
		if !acquire.GetTrack() || known == nil {
			return nil, 0
		}
		return &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: known}}, int64(r.Now()) + known.GetTtl()
	}
	for _, one := range []struct {
		id    []byte
		state logv1.LeaseState
	}{
		{op.GetSettle().GetLeaseId(), logv1.LeaseState_LEASE_STATE_SETTLED},
		{op.GetRelease().GetLeaseId(), logv1.LeaseState_LEASE_STATE_RELEASED},
		{op.GetRenew().GetLeaseId(), logv1.LeaseState_LEASE_STATE_OPEN},
	} {
		switch {
		case one.id == nil:
			continue
		case memory[string(one.id)] == nil:
			return UnknownLease(one.id), 0
		default:
			return LeaseAnswer(one.state, int64(time.Second)), 0
		}
	}
	return nil, 0
}

// step applies an entry with one operation as a trap would have it.
func (r *Replica) step(index uint64, entry *logv1.Entry) *logv1.Result {
	op := entry.GetOperations()[0]
	release, acquire := op.GetRelease(), op.GetAcquire()
	switch {
	case r.trap == trap.NoTombstone && release != nil && !r.known(release.GetLeaseId()):
		return UnknownLease(release.GetLeaseId())
	case r.trap == trap.HalfGrant && len(acquire.GetCharges()) > 1:
		return r.half(index, entry, acquire)
	}
	results, _ := r.Apply(index, entry)
	r.note(entry, results)
	result := results[0]
	for _, d := range result.GetAcquire().GetDenials() {
		switch {
		case r.trap == trap.CostlyDenial:
			r.adjust(index, &logv1.Adjust{Limit: d.GetLimit(), Key: d.GetKey(), Dimension: d.GetDimension()}, -1)
		case r.trap == trap.EarlyHint && d.GetRetryAfter() > 0:
			d.RetryAfter = max(1, d.GetRetryAfter()-int64(time.Millisecond))
		}
	}
	if lease := result.GetLease(); r.trap == trap.DoubleRefund && !lease.GetRepeated() {
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
func (r *Replica) half(index uint64, entry *logv1.Entry, acquire *logv1.Acquire) *logv1.Result {
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

func (r *Replica) adjust(index uint64, op *logv1.Adjust, tokens int64) {
	op.Change, op.Reason = &logv1.Adjust_Add{Add: tokens}, "a mistake that is seeded"
	r.Apply(index, &logv1.Entry{Operations: []*logv1.Operation{{Kind: &logv1.Operation_Adjust{Adjust: op}}}})
}
