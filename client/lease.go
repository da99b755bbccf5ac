package client

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/block"
)

// Usage is what was really used of a dimension. Without Limit and Key it speaks
// of every charge of the dimension.
type Usage struct {
	Limit, Key, Dimension string
	// Used is 0 to 2^53 tokens.
	Used int64
}

// Settled is what became of one charge.
type Settled struct {
	Charge
	Used int64
	// Refunded tokens went back into the bucket, Excess was taken from it or booked
	// as debt, and WrittenOff is the part of the excess that was more than may be.
	Refunded, Excess, WrittenOff int64
}

// Settlement is the answer to a settle, a release or a renewal.
type Settlement struct {
	// State is OPEN, SETTLED, RELEASED or EXPIRED.
	State   string
	Charges []Settled
	// Ends is until when it has to be settled; zero where it has ended.
	Ends time.Time
	// Repeated: it was answered before.
	Repeated bool
	// Local: the lease was this client's own, and nobody was asked.
	Local bool
}

// Settle says what a tracked lease really used, and ends it. A charge that
// nobody names counts as used in full. It may be repeated, with the effect of one
// (G4); the error is ErrUnanswered where no node answered within ctx's deadline
// or Config.Deadline.
func (c *Client) Settle(ctx context.Context, lease Lease, used ...Usage) (*Settlement, error) {
	return c.settle(ctx, lease, used, false)
}

// Progress says what a tracked lease has used so far, cumulatively. It books an
// excess and ends nothing.
func (c *Client) Progress(ctx context.Context, lease Lease, used ...Usage) (*Settlement, error) {
	return c.settle(ctx, lease, used, true)
}

func (c *Client) settle(ctx context.Context, lease Lease, used []Usage, progress bool) (*Settlement, error) {
	if err := checkUsage(used); err != nil {
		return nil, err
	}
	switch {
	case lease.Local && progress:
		return localSettlement("OPEN"), nil
	case lease.Local:
		return localSettlement("SETTLED"), nil
	}
	asked := time.Now()
	answer, err := c.operate(ctx, &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Settle{
		Settle: &quorleasev1.SettleRequest{LeaseId: lease.ID, Used: encodeUsage(used), Progress: progress},
	}})
	if err != nil {
		return nil, err
	}
	r := answer.GetSettle()
	return settlementOf(r.GetState(), r.GetSettlements(), r.GetRepeatedRequest(), endsAt(asked, r.GetTtl())), nil
}

// Release gives a tracked lease back unspent. As Settle.
func (c *Client) Release(ctx context.Context, lease Lease) (*Settlement, error) {
	if lease.Local {
		return localSettlement("RELEASED"), nil
	}
	answer, err := c.operate(ctx, &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Release{
		Release: &quorleasev1.ReleaseRequest{LeaseId: lease.ID, Client: c.config.Client},
	}})
	if err != nil {
		return nil, err
	}
	r := answer.GetRelease()
	return settlementOf(r.GetState(), r.GetSettlements(), r.GetRepeatedRequest(), time.Time{}), nil
}

// Renewal prolongs the time to settle a lease, never the time to spend it (T12).
type Renewal struct {
	// TTL is the new time to settle it from now, 1 ms to 24 h.
	TTL time.Duration
	// Sequence is higher with every renewal of the lease, positive. A repetition
	// has the same.
	Sequence uint64
	// Used is what was used so far, cumulatively.
	Used []Usage
}

// Renew prolongs the time to settle. As Settle.
func (c *Client) Renew(ctx context.Context, lease Lease, r Renewal) (*Settlement, error) {
	if err := checkUsage(r.Used); err != nil {
		return nil, err
	}
	asked := time.Now()
	if lease.Local {
		settlement := localSettlement("OPEN")
		settlement.Ends = asked.Add(r.TTL)
		return settlement, nil
	}
	answer, err := c.operate(ctx, &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Renew{
		Renew: &quorleasev1.RenewRequest{
			LeaseId: lease.ID, Ttl: durationpb.New(r.TTL), Sequence: r.Sequence, Used: encodeUsage(r.Used),
		},
	}})
	if err != nil {
		return nil, err
	}
	a := answer.GetRenew()
	return settlementOf(a.GetState(), a.GetSettlements(), a.GetRepeatedRequest(), endsAt(asked, a.GetTtl())), nil
}

// Peek says what an acquire of the charges would be answered now. It changes
// nothing. The error is ErrUnanswered where nobody answered in time.
func (c *Client) Peek(ctx context.Context, class string, charges ...Charge) (*Decision, error) {
	r := Request{Client: c.config.Client, Class: class, Charges: charges}
	if err := r.check(); err != nil {
		return nil, err
	}
	answer, err := c.operate(ctx, &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Peek{
		Peek: &quorleasev1.PeekRequest{Client: r.Client, Class: class, Charges: encodeCharges(charges)},
	}})
	if err != nil {
		return nil, err
	}
	p := answer.GetPeek()
	return &Decision{
		Granted: p.GetDecision() == quorleasev1.Decision_GRANTED, Source: Node,
		Denials: denialsOf(p.GetDenials()), Remaining: remainingOf(p.GetRemaining()),
	}, nil
}

// operate asks what may be repeated.
func (c *Client) operate(ctx context.Context, item *quorleasev1.RequestItem) (*quorleasev1.ResponseItem, error) {
	bounded, cancel := c.bounded(ctx, 0)
	defer cancel()
	return c.authority.Ask(bounded, &authority.Question{Message: item, Safe: true})
}

func localSettlement(state string) *Settlement { return &Settlement{State: state, Local: true} }

func endsAt(asked time.Time, ttl *durationpb.Duration) time.Time {
	if d := durationOf(ttl); d > 0 {
		return asked.Add(block.Life(d))
	}
	return time.Time{}
}

func encodeUsage(used []Usage) []*quorleasev1.Usage {
	out := make([]*quorleasev1.Usage, len(used))
	for i, u := range used {
		out[i] = &quorleasev1.Usage{Limit: u.Limit, Key: u.Key, Dimension: u.Dimension, Used: u.Used}
	}
	return out
}

func settlementOf(
	state quorleasev1.LeaseState, list []*quorleasev1.Settlement, repeated bool, ends time.Time,
) *Settlement {
	s := &Settlement{State: state.String(), Repeated: repeated, Ends: ends}
	for _, one := range list {
		s.Charges = append(s.Charges, Settled{
			Charge: Charge{one.GetLimit(), one.GetKey(), one.GetDimension(), one.GetAmount()},
			Used:   one.GetUsed(), Refunded: one.GetRefunded(), Excess: one.GetExcess(), WrittenOff: one.GetWrittenOff(),
		})
	}
	return s
}
