// Package record has the records of the state that stand alone: what they are, their
// digests, and how they are saved and checked when they come back. Where they are
// kept and what is due when is the business of package state. It is pure.
package record

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
)

// The tags keep the digests of records of different kinds apart, here and in
// package state. They are part of the state hash: never change one.
const (
	tagBudget   = 3
	tagLease    = 5
	tagNode     = 7
	tagRevision = 8
	tagReport   = 9
)

// MaxCharges bounds the charges of a lease.
const MaxCharges = 16

// LeaseID is the id that a client drew.
type LeaseID [16]byte

// Lease is the record of a tracked acquire, or of a release that came before its
// acquire. After its end it is a tombstone.
type Lease struct {
	ID    LeaseID
	State logv1.LeaseState
	// Unknown: a release of an id that was never acquired.
	Unknown bool

	Owner, Client string
	// Content is the digest of the acquire, Settled that of the settle, Renewed
	// that of the last renewal, whose sequence is kept beside it.
	Content, Settled, Renewed uint64
	Sequence                  uint64
	// SpendUntil is fixed by the grant: a renewal moves SettleUntil only (T12).
	SpendUntil, SettleUntil bucket.Instant
	// ForgetAt is set at the end.
	ForgetAt bucket.Instant
	// Session is the one that its slots come back with; all zeros for none.
	Session SessionID
	// Charges are in the order of (limit, key, dimension).
	Charges []Charge
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
	// Refused: a limit that does not enforce would have refused it. It took nothing.
	Refused bool
}

// Slots says that the charge is of slots: they come from no bucket, and so does
// nothing of them in units.
func (c *Charge) Slots() bool { return c.LimitID != 0 && c.TookUnit == 0 }

// Counted names what was charged. Leases share it, and keep it when the limit is
// gone. Its numbers are 0 for an unlimited limit, which has no bucket.
type Counted struct {
	LimitID, DimensionID uint32
	Limit, Dimension     string
}

// SessionKey names the session of a lease.
func (l *Lease) SessionKey() SessionKey { return SessionKey{ID: l.Session, Owner: l.Owner} }

// OnlySlots says that the lease has nothing but slots.
func (l *Lease) OnlySlots() bool {
	for i := range l.Charges {
		if !l.Charges[i].Slots() {
			return false
		}
	}
	return len(l.Charges) > 0
}

// Open says that the lease has not ended.
func (l *Lease) Open() bool { return l.State == logv1.LeaseState_LEASE_STATE_OPEN }

// Sum is the digest of the record.
func (l *Lease) Sum() uint64 {
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
	// Logs that were written before there were sessions and modes keep their hashes.
	if l.Session != (SessionID{}) {
		sum.Text(string(l.Session[:]))
	}
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
		if c.Refused {
			sum.Bool(true)
		}
	}
	return sum.Value()
}
