package fsm

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
	l := &lease{
		id: leaseID(saved.GetId()), state: saved.GetState(), unknown: saved.GetUnknown(),
		owner: saved.GetOwner(), client: saved.GetClient(),
		content: saved.GetContent(), settled: saved.GetSettled(), renewed: saved.GetRenewed(),
		sequence: saved.GetSequence(), spendUntil: bucket.Instant(saved.GetSpendUntil()),
		settleUntil: bucket.Instant(saved.GetSettleUntil()), forgetAt: bucket.Instant(saved.GetForgetAt()),
		charges: make([]charge, len(saved.GetCharges())),
	}
	if r.leases.Find(l.id) != nil || int64(r.leases.Len()) >= r.caps.GetLeases() {
		return corrupt("lease %x: is there twice, or more than %d", l.id, r.caps.GetLeases())
	}
	for i, c := range saved.GetCharges() {
		if err := checkSavedCharge(c); err != nil {
			return err
		}
		l.charges[i] = charge{
			counted: r.share(c), key: c.GetKey(), amount: c.GetAmount(), class: c.GetClass(),
			took: c.GetTook(), tookUnit: c.GetTookUnit(), refundable: c.GetRefundable(), used: c.GetUsed(),
			refunded: c.GetRefunded(), excess: c.GetExcess(), writtenOff: c.GetWrittenOff(),
		}
	}
	r.leases.Insert(l)
	r.touchLease(l)
	if !l.open() {
		r.deadLeases.Set(l, int64(l.forgetAt))
		return nil
	}
	r.openLeases.Set(l, int64(l.settleUntil))
	r.holdOpen(l, 1)
	return nil
}

// share is the name of what a charge counts, shared with other leases.
func (r *restoring) share(c *logv1.SnapshotCharge) *counted {
	name := counted{
		limit: c.GetLimit(), dimension: c.GetDimension(),
		limitName: c.GetLimitName(), dimensionName: c.GetDimensionName(),
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
	case len(saved.GetId()) != len(leaseID{}):
		return corrupt("lease id of %d bytes", len(saved.GetId()))
	case saved.GetState() < logv1.LeaseState_LEASE_STATE_OPEN || saved.GetState() > logv1.LeaseState_LEASE_STATE_EXPIRED:
		return corrupt("lease %x: state %d", saved.GetId(), saved.GetState())
	case charges > maxCharges || saved.GetUnknown() != (charges == 0) || saved.GetUnknown() && open:
		return corrupt("lease %x: %d charges in state %d", saved.GetId(), charges, saved.GetState())
	case open != (saved.GetForgetAt() == 0):
		return corrupt("lease %x: forget at %d in state %d", saved.GetId(), saved.GetForgetAt(), saved.GetState())
	}
	const last = int64(lastInstant) + int64(48*time.Hour)
	for _, at := range []int64{saved.GetSpendUntil(), saved.GetSettleUntil(), saved.GetForgetAt()} {
		if at < 0 || at > last {
			return corrupt("lease %x: time %d, must be from 0 to %d", saved.GetId(), at, last)
		}
	}
	for _, text := range []string{saved.GetOwner(), saved.GetClient()} {
		if err := checkText("lease", text, 0, maxText); err != nil {
			return corrupt("%v", err)
		}
	}
	return nil
}

func checkSavedCharge(c *logv1.SnapshotCharge) error {
	const most = bucket.MaxTokens
	for _, n := range []int64{c.GetUsed(), c.GetRefunded(), c.GetExcess(), c.GetWrittenOff()} {
		if n < 0 || n > most {
			return corrupt("charge of limit %q: %d tokens, must be from 0 to %d", clip(c.GetLimitName()), n, int64(most))
		}
	}
	switch {
	case c.GetAmount() < 1 || c.GetAmount() > most || c.GetRefundable() < 0 || c.GetRefundable() > c.GetAmount():
		return corrupt("charge of limit %q: %d tokens, %d refundable",
			clip(c.GetLimitName()), c.GetAmount(), c.GetRefundable())
	case c.GetTook() < 0 || c.GetTookUnit() < 0:
		return corrupt("charge of limit %q: took %d of %d", clip(c.GetLimitName()), c.GetTook(), c.GetTookUnit())
	case !lineage.IsName(c.GetLimitName()) || !lineage.IsWord(c.GetDimensionName()) ||
		c.GetClass() != "" && !lineage.IsWord(c.GetClass()):
		return corrupt("charge of limit %q, dimension %q, class %q",
			clip(c.GetLimitName()), clip(c.GetDimensionName()), clip(c.GetClass()))
	case len(c.GetKey()) > maxKey || !printable(c.GetKey()):
		return corrupt("charge of limit %q: %q is no key", c.GetLimitName(), clip(c.GetKey()))
	}
	return nil
}

func (r *restoring) addClient(saved *logv1.SnapshotClient) error {
	c := &client{name: saved.GetName(), slice: time.Duration(saved.GetSliceLength())}
	switch {
	case checkText("client", c.name, 1, maxText) != nil:
		return corrupt("client %q", clip(c.name))
	case c.slice != r.sliceOf(c.name):
		return corrupt("client %q: slices of %v, its retry budget has %v", clip(c.name), c.slice, r.sliceOf(c.name))
	case r.clients.Find(c.name) != nil || int64(r.clients.Len()) >= r.caps.GetClients():
		return corrupt("client %q: is there twice, or more than %d", clip(c.name), r.caps.GetClients())
	case len(saved.GetSources()) > sourcesMost:
		return corrupt("client %q: %d sources, at most %d", clip(c.name), len(saved.GetSources()), sourcesMost)
	}
	for i, s := range saved.GetSources() {
		if i > 0 && c.sources[i-1].compare(s.GetNode(), s.GetBoot()) >= 0 ||
			checkText("node", s.GetNode(), 1, maxText) != nil {
			return corrupt("client %q: source %q is out of order", clip(c.name), clip(s.GetNode()))
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
const savedCountMost = countMost * window.Slices
