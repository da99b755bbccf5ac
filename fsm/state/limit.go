package state

import (
	"iter"
	"maps"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/store"
)

// Limit is one limit at work: its lineage, and what follows from the keys.
type Limit struct {
	*lineage.Lineage
	// keys are the keys that differ from a never-seen one, by when they may be
	// dropped. What may never be is at the end.
	keys store.Queue[*Key]
	// passed counts keys by the version that they have passed.
	passed map[uint32]int
	// made are the keys that each client brought into being, where that is counted.
	made map[string]map[string]struct{}
	// slots are those of each key of which some are held.
	slots map[string]*slots
	// counted are what leases share.
	counted []*record.Counted
	// controlled are the keys that feedback controls, nil for none. It follows from
	// the controls.
	controlled map[string]bool
	place      int32
	touched    bool
	digest     uint64
}

// Place and Before are for the queue of limits.
func (l *Limit) Place() *int32        { return &l.place }
func (l *Limit) Before(o *Limit) bool { return l.ID < o.ID }

// Live says that the limit is configured, not only remembered.
func (l *Limit) Live() bool { return l.Limit != nil }

// Keys is the number of keys that differ from a never-seen one.
func (l *Limit) Keys() int { return l.keys.Len() }

// AllKeys walks them in no particular order.
func (l *Limit) AllKeys() iter.Seq[*Key] { return l.keys.All() }

// FirstDue is the first key that may be dropped, and when; lineage.Never where
// none may.
func (l *Limit) FirstDue() (*Key, bucket.Instant) {
	k, at := l.keys.Top()
	return k, l.Due(bucket.Instant(at))
}

// Counted is the name of a dimension for the leases of it.
func (l *Limit) Counted(d *lineage.Dimension) *record.Counted {
	for _, c := range l.counted {
		if c.DimensionID == d.ID {
			return c
		}
	}
	c := &record.Counted{LimitID: l.ID, DimensionID: d.ID, Limit: l.Name, Dimension: d.Spec.GetName()}
	l.counted = append(l.counted, c)
	return c
}

// due is when the sweep has something to do for the limit: drop a key, forget a
// removed dimension, or forget a deleted limit when all is as if it had never
// been.
func (l *Limit) due() bucket.Instant {
	_, at := l.FirstDue()
	if !l.Live() && l.keys.Len() > 0 {
		return min(at, l.EndAt())
	}
	return min(at, l.ForgetAt())
}

// pass counts keys by the version that they have passed.
func (l *Limit) pass(version uint32, by int) {
	l.passed[version] += by
	if l.passed[version] == 0 {
		delete(l.passed, version)
	}
}

// FindLimit returns the limit, which may be a deleted one, or nil.
func (s *State) FindLimit(name string) *Limit { return s.limits[name] }

// LimitByID returns the limit with a number, or nil.
func (s *State) LimitByID(id uint32) *Limit { return s.limitsByID[id] }

// AllLimits walks the limits in no particular order.
func (s *State) AllLimits() iter.Seq[*Limit] {
	// The order is up to the caller.
	return maps.Values(s.limits)
}

// FirstDueLimit is the limit for which the sweep has something to do first, and
// when.
func (s *State) FirstDueLimit() (*Limit, bucket.Instant) {
	lim, at := s.dueLimits.Top()
	return lim, bucket.Instant(at)
}

// RequeueLimit finds the limit its place after the sweep has looked at it.
func (s *State) RequeueLimit(lim *Limit) { s.dueLimits.Set(lim, int64(lim.due())) }

// NextLimit draws the number of a new limit.
func (s *State) NextLimit() uint32 {
	s.nextLimit++
	return s.nextLimit - 1
}

// AddLimit takes a new limit into the state.
func (s *State) AddLimit(l *lineage.Lineage) *Limit {
	lim := &Limit{Lineage: l, passed: make(map[uint32]int)}
	s.limits[l.Name] = lim
	s.limitsByID[l.ID] = lim
	s.SetLineage(lim, l)
	return lim
}

// SetLineage changes what is known of a limit. Where another version begins, the
// keys that feedback controls come up to now by the one before: what a key carries
// on later has no time of its own left to catch up with. Where too much of the past
// would be kept, all keys pass it. It says whether that voids what nodes hold: nothing is
// written for it, since their records are of another version.
func (s *State) SetLineage(lim *Limit, next *lineage.Lineage) (voided bool) {
	if next.Now().Number != lim.Now().Number {
		voided = s.Ledger.OfLimit(lim.ID) > 0
		for _, c := range s.controlsOf(lim) {
			s.ChangeKey(lim, s.FindKey(lim.ID, c.ID.Key))
		}
	}
	if s.changes(lim, next) {
		s.outlive(lim)
	}
	s.sum -= lim.digest
	lim.Lineage, lim.counted = next, nil
	lim.digest = sumLineage(next)
	s.sum += lim.digest
	s.touchLimit(lim)
	if next.Crowded() {
		s.passAll(lim)
	}
	return voided
}

// ForgetLimit takes a limit without keys out of the state.
func (s *State) ForgetLimit(lim *Limit) {
	s.dueLimits.Remove(lim)
	s.sum -= lim.digest
	delete(s.limits, lim.Name)
	delete(s.limitsByID, lim.ID)
}

// passAll takes every key of the limit to the version now. The order does not
// matter, and no key moves in the queue until the entry is sealed.
func (s *State) passAll(lim *Limit) {
	for k := range lim.keys.All() {
		s.ChangeKey(lim, k)
	}
}

func (s *State) touchLimit(lim *Limit) {
	if !lim.touched {
		lim.touched = true
		s.touched.limits = append(s.touched.limits, lim)
	}
}

// sealLimit lets go of versions that every key has passed.
func (s *State) sealLimit(lim *Limit) {
	if s.limitsByID[lim.ID] != lim {
		return
	}
	first := lim.Versions[0].Number
	for first < lim.Now().Number && lim.passed[first] == 0 {
		first++
	}
	if first != lim.Versions[0].Number {
		s.SetLineage(lim, lim.Trim(first))
	}
	lim.touched = false
	s.RequeueLimit(lim)
}
