package state

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
)

// AddEscrow takes a record into the ledger, of a key that is there: it stays as long as
// there is one. The caller sees to it that there are at most as many as leases may be.
func (s *State) AddEscrow(lim *Limit, k *Key, one record.Escrow) {
	s.touchKey(lim, k).lent = true
	s.Ledger.Add(one)
}

// EndEscrow takes a record out of the ledger.
func (s *State) EndEscrow(e *ledger.Escrow) {
	s.Ledger.Remove(e)
	if len(s.Ledger.OfKey(e.LimitID, e.KeyName)) == 0 {
		s.touchKey(s.limitsByID[e.LimitID], s.FindKey(e.LimitID, e.KeyName)).lent = false
	}
}

// ChangeLimit is SetLineage for a limit that was configured anew: where that changes no
// arithmetic, there is another version all the same if nodes hold anything.
func (s *State) ChangeLimit(lim *Limit, next *lineage.Lineage) (voided bool) {
	if s.Ledger.OfLimit(lim.ID) > 0 && next.Now().Number == lim.Now().Number {
		next = next.Renew(s.Now)
	}
	return s.SetLineage(lim, next)
}

func (r *restoring) addEscrow(saved *logv1.SnapshotEscrow) error {
	one, err := record.LoadEscrow(saved, r.Now)
	if err != nil {
		return err
	}
	lim, k := r.limitsByID[one.LimitID], r.FindKey(one.LimitID, one.KeyName)
	switch {
	case k == nil || one.DimensionID >= lim.NextDimension || one.Version > lim.Now().Number:
		return frames.Corrupt("escrow of key %q of limit %d, dimension %d, version %d: there is none",
			check.Clip(one.KeyName), one.LimitID, one.DimensionID, one.Version)
	case r.Ledger.Find(one.ID) != nil || int64(r.Ledger.Len()) >= r.Caps.GetLeases():
		return frames.Corrupt("escrow %d of node %q: is there twice, or more than %d",
			one.ID.Sequence, check.Clip(one.ID.Node), r.Caps.GetLeases())
	}
	r.AddEscrow(lim, k, one)
	return nil
}
