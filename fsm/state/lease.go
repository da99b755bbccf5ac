package state

import (
	"bytes"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/store"
)

// TombstoneLife is how long a lease is remembered after its end, so that repeated
// requests get the same answer (G4).
const TombstoneLife = bucket.Instant(5 * time.Minute)

// MaxCharges bounds the charges of a lease.
const MaxCharges = 16

// LeaseID is the id that a client drew.
type LeaseID [16]byte

// Lease is the record of a tracked acquire, or of a release that came before its
// acquire. After its end it is a tombstone.
type Lease struct {
	ID         LeaseID
	generation uint32
	place      int32
	State      logv1.LeaseState
	// Unknown: a release of an id that was never acquired.
	Unknown bool
	touched bool

	Owner, Client string
	// Content is the digest of the acquire, Settled that of the settle, Renewed
	// that of the last renewal, whose sequence is kept beside it.
	Content, Settled, Renewed uint64
	Sequence                  uint64
	// SpendUntil is fixed by the grant: a renewal moves SettleUntil only (T12).
	SpendUntil, SettleUntil bucket.Instant
	// ForgetAt is set at the end.
	ForgetAt bucket.Instant
	// Charges are in the order of (limit, key, dimension).
	Charges []Charge
	digest  uint64
}

// Charge is one charge of a lease, and what became of it.
type Charge struct {
	*Counted
	KeyName string
	Amount  int64
	// Class is the name of the class that paid; Took is what came from its own
	// sub-bucket, in units of which a token has TookUnit.
	Class          string
	Took, TookUnit int64
	// Refundable is what may come back at most (T40).
	Refundable int64
	// Used is cumulative, at first by progress.
	Used int64
	// What settling did.
	Refunded, Excess, WrittenOff int64
}

// Counted names what was charged. Leases share it, and keep it when the limit is
// gone. Its numbers are 0 for an unlimited limit, which has no bucket.
type Counted struct {
	LimitID, DimensionID uint32
	Limit, Dimension     string
}

// Key, Generation and Clone are for the table, Place and Before for the queues.
func (l *Lease) Key() LeaseID         { return l.ID }
func (l *Lease) Generation() *uint32  { return &l.generation }
func (l *Lease) Place() *int32        { return &l.place }
func (l *Lease) Before(o *Lease) bool { return bytes.Compare(l.ID[:], o.ID[:]) < 0 }

func (l *Lease) Clone() *Lease {
	c := *l
	c.Charges = append([]Charge(nil), l.Charges...)
	return &c
}

// Open says that the lease has not ended.
func (l *Lease) Open() bool { return l.State == logv1.LeaseState_LEASE_STATE_OPEN }

func (l *Lease) sum() uint64 {
	sum := digest.New(tagLease)
	sum.Text(string(l.ID[:]))
	sum.Word(uint64(l.State))
	sum.Bool(l.Unknown)
	sum.Text(l.Owner)
	sum.Text(l.Client)
	sum.Word(l.Content)
	sum.Word(l.Settled)
	sum.Word(l.Renewed)
	sum.Word(l.Sequence)
	sum.Int(int64(l.SpendUntil))
	sum.Int(int64(l.SettleUntil))
	sum.Int(int64(l.ForgetAt))
	for i := range l.Charges {
		c := &l.Charges[i]
		sum.Word(uint64(c.LimitID)<<32 | uint64(c.DimensionID))
		sum.Text(c.Limit)
		sum.Text(c.Dimension)
		sum.Text(c.KeyName)
		sum.Text(c.Class)
		sum.Int(c.Amount)
		sum.Int(c.Took)
		sum.Int(c.TookUnit)
		sum.Int(c.Refundable)
		sum.Int(c.Used)
		sum.Int(c.Refunded)
		sum.Int(c.Excess)
		sum.Int(c.WrittenOff)
	}
	return sum.Value()
}

// FindLease returns the lease or tombstone, or nil. Change only what TouchLease
// returns.
func (s *State) FindLease(id LeaseID) *Lease { return s.leases.Find(id) }

// AddLease takes a new lease, or the tombstone of a release, into the state.
func (s *State) AddLease(l *Lease) {
	s.leases.Insert(l)
	s.queueLease(l)
	s.TouchLease(l)
	if l.Open() {
		s.holdOpen(l, 1)
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
}

// EndLease makes a tombstone of a touched lease, or prolongs the life of one:
// what could have come back no longer can.
func (s *State) EndLease(l *Lease, state logv1.LeaseState, now bucket.Instant) {
	if l.Open() {
		s.holdOpen(l, -1)
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
func (s *State) KeyOf(c *Charge) (*Limit, *Key) {
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
	l.digest = l.sum()
	s.sum += l.digest
}
