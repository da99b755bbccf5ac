package record

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// Save is the lease for a snapshot.
func (l *Lease) Save() *logv1.SnapshotLease {
	saved := &logv1.SnapshotLease{
		Id: l.ID[:], Owner: l.Owner, Client: l.Client, State: l.State, Unknown: l.Unknown,
		Content: l.Content, Settled: l.Settled, Renewed: l.Renewed, Sequence: l.Sequence,
		SpendUntil: int64(l.SpendUntil), SettleUntil: int64(l.SettleUntil), ForgetAt: int64(l.ForgetAt),
		Charges: make([]*logv1.SnapshotCharge, len(l.Charges)),
	}
	for i := range l.Charges {
		c := &l.Charges[i]
		saved.Charges[i] = &logv1.SnapshotCharge{
			Limit: c.LimitID, Dimension: c.DimensionID, LimitName: c.Limit, DimensionName: c.Dimension,
			Key: c.KeyName, Amount: c.Amount, Class: c.Class, Took: c.Took, TookUnit: c.TookUnit,
			Refundable: c.Refundable, Used: c.Used, Refunded: c.Refunded, Excess: c.Excess, WrittenOff: c.WrittenOff,
			Refused: c.Refused,
		}
	}
	if l.Session != (SessionID{}) {
		saved.Session = l.Session[:]
	}
	return saved
}

// Names makes leases share the names of what they count, as when they were
// granted.
type Names map[Counted]*Counted

func (n Names) share(c *logv1.SnapshotCharge) *Counted {
	name := Counted{
		LimitID: c.GetLimit(), DimensionID: c.GetDimension(), Limit: c.GetLimitName(), Dimension: c.GetDimensionName(),
	}
	if n[name] == nil {
		n[name] = &name
	}
	return n[name]
}

// LoadLease makes a lease of what Save made, and checks all that can be seen
// without other records. The error is a frames.ErrCorrupt.
func LoadLease(saved *logv1.SnapshotLease, names Names) (Lease, error) {
	if err := checkLease(saved); err != nil {
		return Lease{}, err
	}
	l := Lease{
		ID: LeaseID(saved.GetId()), State: saved.GetState(), Unknown: saved.GetUnknown(),
		Owner: saved.GetOwner(), Client: saved.GetClient(),
		Content: saved.GetContent(), Settled: saved.GetSettled(), Renewed: saved.GetRenewed(),
		Sequence: saved.GetSequence(), SpendUntil: bucket.Instant(saved.GetSpendUntil()),
		SettleUntil: bucket.Instant(saved.GetSettleUntil()), ForgetAt: bucket.Instant(saved.GetForgetAt()),
		Charges: make([]Charge, len(saved.GetCharges())),
	}
	if len(saved.GetSession()) > 0 {
		l.Session = SessionID(saved.GetSession())
	}
	for i, c := range saved.GetCharges() {
		if err := checkCharge(c); err != nil {
			return Lease{}, err
		}
		l.Charges[i] = Charge{
			Counted: names.share(c), KeyName: c.GetKey(), Amount: c.GetAmount(), Class: c.GetClass(),
			Took: c.GetTook(), TookUnit: c.GetTookUnit(), Refundable: c.GetRefundable(), Used: c.GetUsed(),
			Refunded: c.GetRefunded(), Excess: c.GetExcess(), WrittenOff: c.GetWrittenOff(), Refused: c.GetRefused(),
		}
	}
	return l, nil
}

func checkLease(saved *logv1.SnapshotLease) error {
	charges := len(saved.GetCharges())
	open := saved.GetState() == logv1.LeaseState_LEASE_STATE_OPEN
	switch {
	case len(saved.GetId()) != len(LeaseID{}):
		return frames.Corrupt("lease id of %d bytes", len(saved.GetId()))
	case saved.GetState() < logv1.LeaseState_LEASE_STATE_OPEN || saved.GetState() > logv1.LeaseState_LEASE_STATE_EXPIRED:
		return frames.Corrupt("lease %x: state %d", saved.GetId(), saved.GetState())
	case charges > MaxCharges || saved.GetUnknown() != (charges == 0) || saved.GetUnknown() && open:
		return frames.Corrupt("lease %x: %d charges in state %d", saved.GetId(), charges, saved.GetState())
	case len(saved.GetSession()) != 0 && len(saved.GetSession()) != len(SessionID{}):
		return frames.Corrupt("lease %x: session id of %d bytes", saved.GetId(), len(saved.GetSession()))
	case open != (saved.GetForgetAt() == 0):
		return frames.Corrupt("lease %x: forget at %d in state %d", saved.GetId(), saved.GetForgetAt(), saved.GetState())
	}
	const last = int64(check.LastInstant) + int64(48*time.Hour)
	for _, at := range []int64{saved.GetSpendUntil(), saved.GetSettleUntil(), saved.GetForgetAt()} {
		if at < 0 || at > last {
			return frames.Corrupt("lease %x: time %d, must be from 0 to %d", saved.GetId(), at, last)
		}
	}
	for _, text := range []string{saved.GetOwner(), saved.GetClient()} {
		if err := check.Text("lease", text, 0, check.MaxText); err != nil {
			return frames.Corrupt("%v", err)
		}
	}
	return nil
}

func checkCharge(c *logv1.SnapshotCharge) error {
	const most = bucket.MaxTokens
	for _, n := range []int64{c.GetUsed(), c.GetRefunded(), c.GetExcess(), c.GetWrittenOff()} {
		if n < 0 || n > most {
			return frames.Corrupt("charge of limit %q: %d tokens, must be from 0 to %d",
				check.Clip(c.GetLimitName()), n, int64(most))
		}
	}
	switch {
	case c.GetAmount() < 1 || c.GetAmount() > most || c.GetRefundable() < 0 || c.GetRefundable() > c.GetAmount():
		return frames.Corrupt("charge of limit %q: %d tokens, %d refundable",
			check.Clip(c.GetLimitName()), c.GetAmount(), c.GetRefundable())
	case c.GetRefused() && c.GetLimit() != 0:
		return frames.Corrupt("charge of limit %q: was refused and charged", check.Clip(c.GetLimitName()))
	case c.GetTook() < 0 || c.GetTookUnit() < 0:
		return frames.Corrupt("charge of limit %q: took %d of %d", check.Clip(c.GetLimitName()), c.GetTook(), c.GetTookUnit())
	case !lineage.IsName(c.GetLimitName()) || !lineage.IsWord(c.GetDimensionName()) ||
		c.GetClass() != "" && !lineage.IsWord(c.GetClass()):
		return frames.Corrupt("charge of limit %q, dimension %q, class %q",
			check.Clip(c.GetLimitName()), check.Clip(c.GetDimensionName()), check.Clip(c.GetClass()))
	case len(c.GetKey()) > check.MaxKey || !check.Printable(c.GetKey()):
		return frames.Corrupt("charge of limit %q: %q is no key", c.GetLimitName(), check.Clip(c.GetKey()))
	}
	return nil
}
