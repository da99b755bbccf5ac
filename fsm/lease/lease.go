// Package lease is the life of a lease after its grant: what settling, releasing,
// renewing and its end do to it and to the buckets that it was paid from. It is
// pure, and works on a state that it is given.
package lease

import (
	"strconv"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// Book works on the leases of a state. One goroutine calls it, that which applies
// entries.
type Book struct {
	state   *state.State
	effects *effect.List
}

// New is the book of a state; what happens to leases is added to effects.
func New(s *state.State, effects *effect.List) *Book { return &Book{s, effects} }

// ID is a lease id on the wire. The error is a *refuse.Refused.
func ID(id []byte) (record.LeaseID, error) {
	if len(id) != len(record.LeaseID{}) {
		return record.LeaseID{}, refuse.Field("lease_id", "%d bytes: must be %d", len(id), len(record.LeaseID{}))
	}
	return record.LeaseID(id), nil
}

// ownLease finds a lease for somebody who may act on it: its owner, or the
// operator. That of another is as unknown as one that never was, and so is the
// mark of a release.
func (b *Book) ownLease(raw []byte, owner string) (*state.Lease, error) {
	id, err := ID(raw)
	if err == nil {
		err = refuse.Text("owner", owner, 0, check.MaxText)
	}
	if err != nil {
		return nil, err
	}
	l := b.Find(id)
	if l == nil || l.Unknown || !belongsTo(l, owner) {
		return nil, notFound(id)
	}
	return l, nil
}

func belongsTo(l *state.Lease, owner string) bool { return owner == "" || owner == l.Owner }

func notFound(id record.LeaseID) error {
	return refuse.For(logv1.Refusal_CAUSE_LEASE_NOT_FOUND, "lease_id", "%x: there is no such lease", id)
}

func leaseResult(r *logv1.LeaseResult) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Lease{Lease: r}}
}

// Conflict refuses what would change what has happened to a lease.
func Conflict(l *state.Lease, what string) error {
	return refuse.For(logv1.Refusal_CAUSE_LEASE_CONFLICT, "lease_id", "%x: %s", l.ID, what)
}

// Find looks a lease up as it is now: one whose time is over has ended,
// whether or not the sweep has come to it (T28).
func (b *Book) Find(id record.LeaseID) *state.Lease {
	l := b.state.FindLease(id)
	if l != nil && l.Open() && b.state.Now >= l.SettleUntil {
		l = b.Expire(l)
	}
	if l != nil && !l.Open() && b.state.Now >= l.ForgetAt {
		b.state.ForgetLease(l)
		return nil
	}
	return l
}

// Expire ends a lease that nobody settled: it is charged in full.
func (b *Book) Expire(l *state.Lease) *state.Lease {
	l = b.state.TouchLease(l)
	b.charge(l)
	b.state.EndLease(l, logv1.LeaseState_LEASE_STATE_EXPIRED, l.SettleUntil)
	b.ended(l, "expired")
	return l
}

// ended tells of a lease that ended unreported, by its first charge.
func (b *Book) ended(l *state.Lease, how string) {
	b.effects.Add(effect.Effect{
		Kind: effect.LeaseEnded, Client: l.Client, Value: how,
		Limit: l.Charges[0].Limit, Key: l.Charges[0].KeyName, Dimension: l.Charges[0].Dimension,
	})
}

// charge charges a lease that nobody settled in full, but for its slots, which come
// back.
func (b *Book) charge(l *state.Lease) {
	for i := range l.Charges {
		c := &l.Charges[i]
		if c.Slots() {
			b.free(l, c)
			continue
		}
		c.Used = max(c.Used, c.Amount)
	}
}

// free gives the slots of an open lease back, and nothing else of it. Whoever waits
// for them wants to know.
func (b *Book) free(l *state.Lease, c *record.Charge) {
	if !c.Slots() || !l.Open() {
		return
	}
	c.Refunded = c.Amount
	b.effects.Add(effect.Effect{
		Kind: effect.SlotsFreed, Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension,
		Client: l.Client, Value: strconv.FormatInt(c.Amount, 10),
	})
}
