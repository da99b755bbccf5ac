package sim

import (
	"bytes"
	"fmt"
	"maps"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
)

// replica is the real state machine, and what a trap makes of it.
type replica struct {
	*fsm.Machine
	trap Trap
	// view is what some traps decide by: the leases that the replica has seen
	// granted, by their ids, and until when they may be settled.
	view map[string]bucket.Instant
	// effects are those of the last entry.
	effects []effect.Effect
}

func newReplica(trap Trap) *replica {
	return &replica{Machine: fsm.New(), trap: trap, view: make(map[string]bucket.Instant)}
}

// frozen is a replica's snapshot. It is written out when somebody wants to read
// it, which may be long after, while entries were applied.
type frozen struct {
	handle *fsm.Snapshot
	file   []byte
	view   map[string]bucket.Instant
}

func (r *replica) freeze() *frozen {
	return &frozen{handle: r.Snapshot(), view: maps.Clone(r.view)}
}

// thaw is a replica restored from a snapshot.
func thaw(trap Trap, f *frozen) (*replica, error) {
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
	return &replica{Machine: machine, trap: trap, view: maps.Clone(f.view)}, nil
}

// apply applies an entry. Where a trap is about single operations, each is applied
// by itself, on every replica alike.
func (r *replica) apply(index uint64, entry *logv1.Entry) []*logv1.Result {
	if !r.trap.stepwise() || len(entry.GetOperations()) == 0 {
		results, effects := r.Apply(index, entry)
		r.effects = effects
		r.note(entry, results)
		return results
	}
	r.effects = nil
	results := make([]*logv1.Result, len(entry.GetOperations()))
	for i, op := range entry.GetOperations() {
		results[i] = r.step(index, &logv1.Entry{
			Stamp: entry.GetStamp(), Wall: entry.GetWall(), Operations: []*logv1.Operation{op},
		})
	}
	return results
}

func (r *replica) known(id []byte) bool {
	_, ok := r.view[string(id)]
	return ok
}

// note keeps the view.
func (r *replica) note(entry *logv1.Entry, results []*logv1.Result) {
	if r.trap != NoTombstone && r.trap != OwnView {
		return
	}
	for i, op := range entry.GetOperations() {
		id := string(op.GetAcquire().GetLeaseId())
		if op.GetAcquire().GetTrack() && results[i].GetAcquire().GetGranted() {
			if _, ok := r.view[id]; !ok {
				r.view[id] = r.Now() + bucket.Instant(results[i].GetAcquire().GetTtl())
			}
		}
		if renew := op.GetRenew(); renew != nil && results[i].GetLease() != nil {
			r.view[string(renew.GetLeaseId())] = r.Now() + bucket.Instant(results[i].GetLease().GetTtl())
		}
	}
}

func unknownLease(id []byte) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Refusal{Refusal: &logv1.Refusal{
		Cause: logv1.Refusal_CAUSE_LEASE_NOT_FOUND, Field: "lease_id", Message: fmt.Sprintf("%x: there is no such lease", id),
	}}}
}

func leaseAnswer(state logv1.LeaseState, ttl int64) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Lease{Lease: &logv1.LeaseResult{State: state, Ttl: ttl}}}
}
