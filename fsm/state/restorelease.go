package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/window"
)

func (r *restoring) addLease(saved *logv1.SnapshotLease) error {
	if err := checkSavedLease(saved); err != nil {
		return err
	}
	l := &Lease{
		ID: LeaseID(saved.GetId()), State: saved.GetState(), Unknown: saved.GetUnknown(),
		Owner: saved.GetOwner(), Client: saved.GetClient(),
		Content: saved.GetContent(), Settled: saved.GetSettled(), Renewed: saved.GetRenewed(),
		Sequence: saved.GetSequence(), SpendUntil: bucket.Instant(saved.GetSpendUntil()),
		SettleUntil: bucket.Instant(saved.GetSettleUntil()), ForgetAt: bucket.Instant(saved.GetForgetAt()),
		Charges: make([]Charge, len(saved.GetCharges())),
	}
	if r.FindLease(l.ID) != nil || int64(r.leases.Len()) >= r.Caps.GetLeases() {
		return corrupt("lease %x: is there twice, or more than %d", l.ID, r.Caps.GetLeases())
	}
	for i, c := range saved.GetCharges() {
		if err := checkSavedCharge(c); err != nil {
			return err
		}
		l.Charges[i] = Charge{
			Counted: r.share(c), KeyName: c.GetKey(), Amount: c.GetAmount(), Class: c.GetClass(),
			Took: c.GetTook(), TookUnit: c.GetTookUnit(), Refundable: c.GetRefundable(), Used: c.GetUsed(),
			Refunded: c.GetRefunded(), Excess: c.GetExcess(), WrittenOff: c.GetWrittenOff(),
		}
	}
	r.AddLease(l)
	return nil
}

// share is the name of what a charge counts, shared with other leases.
func (r *restoring) share(c *logv1.SnapshotCharge) *Counted {
	name := Counted{
		LimitID: c.GetLimit(), DimensionID: c.GetDimension(), Limit: c.GetLimitName(), Dimension: c.GetDimensionName(),
	}
	if r.shared[name] == nil {
		r.shared[name] = &name
	}
	return r.shared[name]
}

func checkSavedLease(saved *logv1.SnapshotLease) error {
	charges := len(saved.GetCharges())
	open := saved.GetState() == logv1.LeaseState_LEASE_STATE_OPEN
	switch {
	case len(saved.GetId()) != len(LeaseID{}):
		return corrupt("lease id of %d bytes", len(saved.GetId()))
	case saved.GetState() < logv1.LeaseState_LEASE_STATE_OPEN || saved.GetState() > logv1.LeaseState_LEASE_STATE_EXPIRED:
		return corrupt("lease %x: state %d", saved.GetId(), saved.GetState())
	case charges > MaxCharges || saved.GetUnknown() != (charges == 0) || saved.GetUnknown() && open:
		return corrupt("lease %x: %d charges in state %d", saved.GetId(), charges, saved.GetState())
	case open != (saved.GetForgetAt() == 0):
		return corrupt("lease %x: forget at %d in state %d", saved.GetId(), saved.GetForgetAt(), saved.GetState())
	}
	const last = int64(LastInstant) + int64(48*time.Hour)
	for _, at := range []int64{saved.GetSpendUntil(), saved.GetSettleUntil(), saved.GetForgetAt()} {
		if at < 0 || at > last {
			return corrupt("lease %x: time %d, must be from 0 to %d", saved.GetId(), at, last)
		}
	}
	for _, text := range []string{saved.GetOwner(), saved.GetClient()} {
		if err := CheckText("lease", text, 0, MaxText); err != nil {
			return corrupt("%v", err)
		}
	}
	return nil
}

func checkSavedCharge(c *logv1.SnapshotCharge) error {
	const most = bucket.MaxTokens
	for _, n := range []int64{c.GetUsed(), c.GetRefunded(), c.GetExcess(), c.GetWrittenOff()} {
		if n < 0 || n > most {
			return corrupt("charge of limit %q: %d tokens, must be from 0 to %d", Clip(c.GetLimitName()), n, int64(most))
		}
	}
	switch {
	case c.GetAmount() < 1 || c.GetAmount() > most || c.GetRefundable() < 0 || c.GetRefundable() > c.GetAmount():
		return corrupt("charge of limit %q: %d tokens, %d refundable",
			Clip(c.GetLimitName()), c.GetAmount(), c.GetRefundable())
	case c.GetTook() < 0 || c.GetTookUnit() < 0:
		return corrupt("charge of limit %q: took %d of %d", Clip(c.GetLimitName()), c.GetTook(), c.GetTookUnit())
	case !lineage.IsName(c.GetLimitName()) || !lineage.IsWord(c.GetDimensionName()) ||
		c.GetClass() != "" && !lineage.IsWord(c.GetClass()):
		return corrupt("charge of limit %q, dimension %q, class %q",
			Clip(c.GetLimitName()), Clip(c.GetDimensionName()), Clip(c.GetClass()))
	case len(c.GetKey()) > MaxKey || !Printable(c.GetKey()):
		return corrupt("charge of limit %q: %q is no key", c.GetLimitName(), Clip(c.GetKey()))
	}
	return nil
}

func (r *restoring) addClient(saved *logv1.SnapshotClient) error {
	c := &Client{Name: saved.GetName(), slice: time.Duration(saved.GetSliceLength())}
	switch {
	case CheckText("client", c.Name, 1, MaxText) != nil:
		return corrupt("client %q", Clip(c.Name))
	case c.slice != r.SliceOf(c.Name):
		return corrupt("client %q: slices of %v, its retry budget has %v", Clip(c.Name), c.slice, r.SliceOf(c.Name))
	case r.clients.Find(c.Name) != nil || int64(r.clients.Len()) >= r.Caps.GetClients():
		return corrupt("client %q: is there twice, or more than %d", Clip(c.Name), r.Caps.GetClients())
	case len(saved.GetSources()) > maxSources:
		return corrupt("client %q: %d sources, at most %d", Clip(c.Name), len(saved.GetSources()), maxSources)
	}
	for i, s := range saved.GetSources() {
		if i > 0 && c.sources[i-1].compare(s.GetNode(), s.GetBoot()) >= 0 ||
			CheckText("node", s.GetNode(), 1, MaxText) != nil {
			return corrupt("client %q: source %q is out of order", Clip(c.Name), Clip(s.GetNode()))
		}
		c.sources = append(c.sources, source{node: strings.Clone(s.GetNode()), boot: s.GetBoot()})
		if err := loadCounts(&c.sources[i].counts, s.GetCounts()); err != nil {
			return err
		}
	}
	r.clients.Insert(c)
	r.touchClient(c)
	return nil
}

func loadCounts(counts *window.Counts, saved []*logv1.SnapshotCount) error {
	ascend := slices.IsSortedFunc(saved, func(a, b *logv1.SnapshotCount) int {
		return cmp.Compare(a.GetSlice(), b.GetSlice())
	})
	if len(saved) > window.Slices+2 || !ascend {
		return corrupt("%d counts, at most %d in order", len(saved), window.Slices+2)
	}
	for _, one := range saved {
		if one.GetSlice() < 0 || one.GetTotal() < 0 || one.GetRetries() < 0 ||
			one.GetTotal() > savedCountMost || one.GetRetries() > savedCountMost {
			return corrupt("count %d of %d in slice %d", one.GetRetries(), one.GetTotal(), one.GetSlice())
		}
		counts.Add(one.GetSlice(), one.GetTotal(), one.GetRetries())
	}
	return nil
}

// savedCountMost: when a retry budget gets longer slices, counts are added up.
const savedCountMost = MaxCount * window.Slices
