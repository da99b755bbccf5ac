package lease

import (
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/quota"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refund"
	"github.com/quorlease/quorlease/fsm/state"
)

// unnamed stands for a charge that a list of usages does not name.
const unnamed = -1

// reported is what a request says of the charges of a lease, by their index.
type reported [record.MaxCharges]int64

// Settle ends a lease with its real usage, or books progress.
func (b *Book) Settle(op *logv1.Settle) (*logv1.Result, error) {
	l, err := b.ownLease(op.GetLeaseId(), op.GetOwner())
	if err != nil {
		return nil, err
	}
	used, err := match(l, op.GetUsed())
	if err != nil {
		return nil, err
	}
	if op.GetProgress() {
		return b.progress(l, used)
	}
	for i := range l.Charges {
		if used[i] == unnamed {
			used[i] = l.Charges[i].Amount
		}
	}
	content := sumUsage(l, used)
	switch l.State {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		if l.Settled != content {
			return nil, Conflict(l, "was settled with other usage")
		}
		return leaseResult(b.answer(l, true)), nil
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return nil, Conflict(l, "was released")
	case logv1.LeaseState_LEASE_STATE_UNSPECIFIED, logv1.LeaseState_LEASE_STATE_OPEN, logv1.LeaseState_LEASE_STATE_EXPIRED:
	}
	l = b.state.TouchLease(l)
	b.settle(l, used, content)
	return leaseResult(b.answer(l, false)), nil
}

// settle books the usage. Of a lease that has ended unreported nothing comes
// back, but an excess still counts.
func (b *Book) settle(l *state.Lease, used reported, content uint64) {
	for i := range l.Charges {
		c := &l.Charges[i]
		if c.Slots() {
			// They come back whole, whatever was said of their use.
			b.free(l, c)
			continue
		}
		b.bookExcess(l, c, used[i])
		if !l.Open() {
			c.Used = used[i]
			continue
		}
		// Usage is cumulative: what progress has reported stays used.
		c.Used = max(used[i], c.Used)
		b.refund(c)
	}
	l.Settled = content
	b.state.EndLease(l, logv1.LeaseState_LEASE_STATE_SETTLED, b.state.Now)
}

// progress books what is above the amounts, and leaves the rest alone.
func (b *Book) progress(l *state.Lease, used reported) (*logv1.Result, error) {
	switch l.State {
	case logv1.LeaseState_LEASE_STATE_SETTLED:
		return nil, Conflict(l, "was settled")
	case logv1.LeaseState_LEASE_STATE_RELEASED:
		return nil, Conflict(l, "was released")
	case logv1.LeaseState_LEASE_STATE_UNSPECIFIED, logv1.LeaseState_LEASE_STATE_OPEN, logv1.LeaseState_LEASE_STATE_EXPIRED:
	}
	l = b.bookProgress(l, used)
	return leaseResult(b.answer(l, false)), nil
}

func (b *Book) bookProgress(l *state.Lease, used reported) *state.Lease {
	for i := range l.Charges {
		if used[i] <= l.Charges[i].Used || l.Charges[i].Slots() {
			continue
		}
		l = b.state.TouchLease(l)
		b.bookExcess(l, &l.Charges[i], used[i])
		l.Charges[i].Used = used[i]
	}
	return l
}

// bookExcess takes usage above the amount from the bucket, or books it as debt.
// Usage is cumulative: what was booked before is not booked again.
func (b *Book) bookExcess(l *state.Lease, c *record.Charge, used int64) {
	extra := used - c.Amount - c.Excess
	if extra <= 0 || c.LimitID == 0 {
		return
	}
	c.Used = max(c.Used, used)
	c.Excess += extra
	beyond := extra
	if lim, k := b.excessKey(c); k != nil {
		d := lim.Now().FindID(c.DimensionID)
		if d < 0 && lim.Limit.GetKind() == logv1.Kind_KIND_QUOTA {
			// It was granted in a window before: the usage counts in this one.
			d = lim.Now().Find(c.Dimension)
		}
		if d >= 0 {
			dimension, one := &lim.Now().For(k.Name).Dimensions[d], &k.Held(d).Bucket
			one.Advance(dimension.Shape, b.state.Now)
			class, _ := dimension.Class(c.Class)
			beyond = one.Excess(dimension.Shape, class, extra)
			quota.Warn(b.effects, lim, k, d, l.Client)
		}
	}
	if beyond == 0 {
		return
	}
	c.WrittenOff += beyond
	b.effects.Add(effect.Effect{
		Kind: effect.DebtWrittenOff, Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension, Client: l.Client,
		Value: fmt.Sprint(beyond),
		Text:  fmt.Sprintf("usage of %d for a charge of %d: %d tokens are beyond the debt allowed", used, c.Amount, beyond),
	})
}

// excessKey is the key to book an excess on. One that was dropped after the
// lease had ended comes back, where the cap lets it.
func (b *Book) excessKey(c *record.Charge) (*state.Limit, *state.Key) {
	lim, k := b.state.KeyOf(c)
	switch {
	case lim == nil:
		return nil, nil
	case k != nil:
		return lim, b.state.ChangeKey(lim, k)
	case int64(b.state.Keys()) >= b.state.Caps.GetKeys() || !lim.Live() || int64(lim.Keys()) >= lim.Limit.GetMaxKeys():
		return nil, nil
	}
	return lim, b.state.AddKey(lim, c.KeyName)
}

// refund gives back what was not used, as far as it can come back.
func (b *Book) refund(c *record.Charge) {
	if c.Slots() {
		return
	}
	c.Refunded = refund.Give(b.state, refund.Part{
		LimitID: c.LimitID, DimensionID: c.DimensionID, Key: c.KeyName, Class: c.Class,
		Tokens: min(c.Amount-c.Used, c.Refundable), Took: c.Took, TookUnit: c.TookUnit,
	})
}

func sumUsage(l *state.Lease, used reported) uint64 {
	sum := digest.New(tagUsage)
	for i := range l.Charges {
		sum.Int(used[i])
	}
	return sum.Value()
}

// answer is what a lease says of itself.
func (b *Book) answer(l *state.Lease, repeated bool) *logv1.LeaseResult {
	answer := &logv1.LeaseResult{
		Repeated: repeated, State: l.State, Settlements: make([]*logv1.Settlement, len(l.Charges)),
	}
	if l.Open() {
		answer.Ttl = max(0, int64(l.SettleUntil-b.state.Now))
	}
	for i := range l.Charges {
		c := &l.Charges[i]
		answer.Settlements[i] = &logv1.Settlement{
			Limit: c.Limit, Key: c.KeyName, Dimension: c.Dimension, Amount: c.Amount,
			Used: c.Used, Refunded: c.Refunded, Excess: c.Excess, WrittenOff: c.WrittenOff,
		}
	}
	return answer
}
