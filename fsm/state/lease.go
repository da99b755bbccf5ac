package state

import (
	"bytes"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/store"
)

// TombstoneLife is how long a lease is remembered after its end, so that repeated
// requests get the same answer (G4).
const TombstoneLife = bucket.Instant(5 * time.Minute)

// Lease is the record of a tracked acquire at work.
type Lease struct {
	record.Lease
	generation uint32
	place      int32
	touched    bool
	digest     uint64
	// holds are the slots that it holds while it is open. They follow from the
	// charges.
	holds *holding
}

// Key, Generation and Clone are for the table, Place and Before for the queues.
func (l *Lease) Key() record.LeaseID  { return l.ID }
func (l *Lease) Generation() *uint32  { return &l.generation }
func (l *Lease) Place() *int32        { return &l.place }
func (l *Lease) Before(o *Lease) bool { return bytes.Compare(l.ID[:], o.ID[:]) < 0 }

func (l *Lease) Clone() *Lease {
	c := *l
	c.Charges = append([]record.Charge(nil), l.Charges...)
	return &c
}

// FindLease returns the lease or tombstone, or nil. Change only what TouchLease
// returns.
func (s *State) FindLease(id record.LeaseID) *Lease { return s.leases.Find(id) }

// AddLease takes a new lease, or the tombstone of a release, into the state.
func (s *State) AddLease(one record.Lease) {
	l := &Lease{Lease: one}
	s.leases.Insert(l)
	s.queueLease(l)
	s.TouchLease(l)
	if l.Open() {
		s.holdOpen(l, 1)
		s.holdSlots(l)
		s.tie(l)
	}
}

// TouchLease returns the lease to change. Pointers to the lease of before are
// void.
func (s *State) TouchLease(l *Lease) *Lease {
	if l.touched {
		return l
	}
	own := s.leases.Own(l)
	if own != l {
		s.queueOf(own).Renew(own)
	}
	own.touched = true
	s.sum -= own.digest
	s.touched.leases = append(s.touched.leases, own)
	return own
}

// RenewLease moves the time by which a touched, open lease is to be settled.
func (s *State) RenewLease(l *Lease, until bucket.Instant) {
	l.SettleUntil = until
	s.queueLease(l)
	l.keepSlots()
}

// EndLease makes a tombstone of a touched lease, or prolongs the life of one:
// what could have come back no longer can.
func (s *State) EndLease(l *Lease, state logv1.LeaseState, now bucket.Instant) {
	if l.Open() {
		s.holdOpen(l, -1)
		l.freeSlots()
		s.untie(l)
		s.openLeases.Remove(l)
	}
	l.State = state
	l.ForgetAt = now + TombstoneLife
	s.queueLease(l)
}

// ForgetLease takes a tombstone out of the state.
func (s *State) ForgetLease(l *Lease) {
	if !l.touched {
		s.sum -= l.digest
	}
	l.touched = false
	s.deadLeases.Remove(l)
	s.leases.Remove(l)
}

// FirstToSettle is the open lease that ends first, and when; nil and
// lineage.Never where there is none.
func (s *State) FirstToSettle() (*Lease, bucket.Instant) {
	l, at := s.openLeases.Top()
	return l, bucket.Instant(at)
}

// FirstToForget is the tombstone that goes first, and when.
func (s *State) FirstToForget() (*Lease, bucket.Instant) {
	l, at := s.deadLeases.Top()
	return l, bucket.Instant(at)
}

// KeyOf is what a charge was taken from: nil where it is gone, or as never seen.
func (s *State) KeyOf(c *record.Charge) (*Limit, *Key) {
	lim := s.limitsByID[c.LimitID]
	if lim == nil {
		return nil, nil
	}
	return lim, s.FindKey(c.LimitID, c.KeyName)
}

// holdOpen counts an open lease with its keys, or, by -1, no longer: what of it
// can come back, and that its keys are not dropped. The charges of one key
// follow one another.
func (s *State) holdOpen(l *Lease, by int64) {
	for i := range l.Charges {
		c := &l.Charges[i]
		lim, k := s.KeyOf(c)
		if k == nil {
			continue
		}
		k = s.touchKey(lim, k)
		if d := lim.At(k.Passed).FindID(c.DimensionID); d >= 0 {
			k.Held(d).Open += by * c.Refundable
		}
		if i == 0 || l.Charges[i-1].LimitID != c.LimitID || l.Charges[i-1].KeyName != c.KeyName {
			k.Leases += uint32(by)
		}
	}
}

// queueOf is the queue that a lease waits in.
func (s *State) queueOf(l *Lease) *store.Queue[*Lease] {
	if l.Open() {
		return &s.openLeases
	}
	return &s.deadLeases
}

func (s *State) queueLease(l *Lease) {
	if l.Open() {
		s.openLeases.Set(l, int64(l.SettleUntil))
		return
	}
	s.deadLeases.Set(l, int64(l.ForgetAt))
}

func (s *State) sealLease(l *Lease) {
	if !l.touched {
		return
	}
	l.touched = false
	l.digest = l.Sum()
	s.sum += l.digest
}
