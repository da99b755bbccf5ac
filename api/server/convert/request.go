package convert

import (
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Acquire makes the operation of an acquire by owner. Without a record there
// need be no lease id: nobody will name it again. What the request says of its
// work is checked, and left to be expanded.
func Acquire(r *quorleasev1.AcquireRequest, owner string) (*logv1.Operation, error) {
	return (&Room{}).Acquire(r, owner)
}

// Acquire is Acquire in this room, where the operation before it is no more.
func (all *Room) Acquire(r *quorleasev1.AcquireRequest, owner string) (*logv1.Operation, error) {
	c := &checker{}
	op := &all.acquire
	op.Reset()
	op.Owner, op.Client, op.Class, op.Track = owner, r.GetClient(), r.GetClass(), r.GetTrack()
	op.Charges = c.operationCharges(r.GetCharges(), len(r.GetAttributes()) > 0, all)
	c.problem("client", limitsfile.ClientProblem(r.GetClient()))
	c.class(r.GetClass())
	c.attributes(r)
	if len(r.GetAttributes()) > 0 {
		op.Content = asked(r)
	}
	if r.GetMaxWait() != nil {
		c.duration("max_wait", r.GetMaxWait(), 0, WaitMax)
	}
	if r.GetLeaseId() != "" || r.GetTrack() {
		op.LeaseId = c.leaseID(r.GetLeaseId())
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	all.kind.Acquire, all.operation.Kind = op, &all.kind
	return &all.operation, nil
}

// Room is memory for the operation of an acquire in one piece, with one charge: an
// acquire is the commonest thing there is.
type Room struct {
	operation logv1.Operation
	kind      logv1.Operation_Acquire
	acquire   logv1.Acquire
	charge    logv1.Charge
	charges   [1]*logv1.Charge
}

// operationCharges checks and converts charges, of which there are none only where
// the work is described; what it returns is of use only if nothing was wrong. One charge
// takes its place in room.
func (c *checker) operationCharges(
	list []*quorleasev1.Charge, described bool, room *Room,
) []*logv1.Charge {
	if len(list) == 0 && described {
		return nil
	}
	c.charges(list)
	if len(c.fields) > 0 {
		return nil
	}
	charges := room.charges[:]
	room.charge.Reset()
	charges[0] = &room.charge
	if len(list) > 1 {
		// One block for all of them.
		block := make([]logv1.Charge, len(list))
		charges = make([]*logv1.Charge, len(list))
		for i := range block {
			charges[i] = &block[i]
		}
	}
	for i, charge := range list {
		charges[i].Limit, charges[i].Key = charge.GetLimit(), charge.GetKey()
		charges[i].Dimension, charges[i].Amount = charge.GetDimension(), charge.GetAmount()
	}
	return charges
}

func (c *checker) operationUsage(list []*quorleasev1.Usage) []*logv1.Usage {
	c.used(list)
	var used []*logv1.Usage
	for _, u := range list {
		used = append(used, &logv1.Usage{
			Limit: u.GetLimit(), Key: u.GetKey(), Dimension: u.GetDimension(), Used: u.GetUsed(),
		})
	}
	return used
}

// Settle makes the operation of a settle by owner.
func Settle(r *quorleasev1.SettleRequest, owner string) (*logv1.Operation, error) {
	c := &checker{}
	op := &logv1.Settle{
		LeaseId: c.leaseID(r.GetLeaseId()), Owner: owner, Progress: r.GetProgress(),
		Used: c.operationUsage(r.GetUsed()),
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return &logv1.Operation{Kind: &logv1.Operation_Settle{Settle: op}}, nil
}

// Release makes the operation of a release by owner.
func Release(r *quorleasev1.ReleaseRequest, owner string) (*logv1.Operation, error) {
	c := &checker{}
	op := &logv1.Release{LeaseId: c.leaseID(r.GetLeaseId()), Owner: owner, Client: r.GetClient()}
	c.problem("client", limitsfile.ClientProblem(r.GetClient()))
	if err := c.err(); err != nil {
		return nil, err
	}
	return &logv1.Operation{Kind: &logv1.Operation_Release{Release: op}}, nil
}

// Renew makes the operation of a renewal by owner.
func Renew(r *quorleasev1.RenewRequest, owner string) (*logv1.Operation, error) {
	c := &checker{}
	op := &logv1.Renew{
		LeaseId: c.leaseID(r.GetLeaseId()), Owner: owner, Sequence: r.GetSequence(),
		Ttl:  int64(c.duration("ttl", r.GetTtl(), ttlMin, ttlMax)),
		Used: c.operationUsage(r.GetUsed()),
	}
	if r.GetSequence() == 0 {
		c.fail("sequence", "0: must be positive, and higher with every renewal")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return &logv1.Operation{Kind: &logv1.Operation_Renew{Renew: op}}, nil
}

// Peek makes an acquire that is only looked at.
func Peek(r *quorleasev1.PeekRequest) (*logv1.Acquire, error) {
	c := &checker{}
	all := &Room{}
	op := &all.acquire
	op.LeaseId, op.Client, op.Class = make([]byte, 16), r.GetClient(), r.GetClass()
	op.Charges = c.operationCharges(r.GetCharges(), len(r.GetAttributes()) > 0, all)
	c.problem("client", limitsfile.ClientProblem(r.GetClient()))
	c.class(r.GetClass())
	c.attributes(r)
	return op, c.err()
}

// Adjust makes the operation of a change by hand.
func Adjust(r *quorleasev1.LimitsAdjustRequest, by string) (*logv1.Operation, error) {
	c := &checker{}
	c.problem("limit", limitsfile.NameProblem(r.GetLimit()))
	c.problem("key", limitsfile.KeyProblem(r.GetKey()))
	if !r.GetClearBlock() {
		c.problem("dimension", limitsfile.DimensionProblem(r.GetDimension()))
	} else if r.GetDimension() != "" {
		c.fail("dimension", "%s: must be absent: a whole key is cleared", limitsfile.Quote(r.GetDimension()))
	}
	c.reason(r.GetReason())
	op := &logv1.Adjust{
		Limit: r.GetLimit(), Key: r.GetKey(), Dimension: r.GetDimension(), Reason: r.GetReason(), Author: by,
	}
	switch change := r.GetChange().(type) {
	case *quorleasev1.LimitsAdjustRequest_Add:
		if n := change.Add; n == 0 || n < -bucket.MaxTokens || n > bucket.MaxTokens {
			c.fail("add", "%d is out of range -%d..%d without 0", n, int64(bucket.MaxTokens), int64(bucket.MaxTokens))
		}
		op.Change = &logv1.Adjust_Add{Add: change.Add}
	case *quorleasev1.LimitsAdjustRequest_Reset_:
		if !change.Reset_ {
			c.fail("reset", "false: set it to true, or leave it out")
		}
		op.Change = &logv1.Adjust_Reset_{Reset_: change.Reset_}
	case *quorleasev1.LimitsAdjustRequest_ClearBlock:
		if !change.ClearBlock {
			c.fail("clear_block", "false: set it to true, or leave it out")
		}
		op.Change = &logv1.Adjust_Clear{Clear: change.ClearBlock}
	default:
		c.fail("add", "missing: a number of tokens, reset: true or clear_block: true")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return &logv1.Operation{Kind: &logv1.Operation_Adjust{Adjust: op}}, nil
}

// reason is said by an operator and kept for others to read.
func (c *checker) reason(s string) {
	switch {
	case strings.TrimSpace(s) == "":
		c.fail("reason", "missing: 1 to %d bytes", reasonMax)
	case len(s) > reasonMax:
		c.fail("reason", "%d bytes, more than %d", len(s), reasonMax)
	default:
		// A reason is a text like a key: on one line.
		c.problem("reason", limitsfile.KeyProblem(s))
	}
}
