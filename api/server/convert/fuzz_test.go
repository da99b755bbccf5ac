package convert_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
)

// FuzzRequest: bytes that decode as a session's item become an operation that the
// state machine takes without complaint about a field's form, or an error that
// names a field. Nothing panics.
func FuzzRequest(f *testing.F) {
	for _, item := range []*quorleasev1.RequestItem{
		{Operation: &quorleasev1.RequestItem_Acquire{Acquire: acquire(func(*quorleasev1.AcquireRequest) {})}},
		{Operation: &quorleasev1.RequestItem_Settle{Settle: &quorleasev1.SettleRequest{
			LeaseId: leaseID, Used: []*quorleasev1.Usage{{Dimension: "requests", Used: 3}}, Progress: true,
		}}},
		{Operation: &quorleasev1.RequestItem_Release{Release: &quorleasev1.ReleaseRequest{LeaseId: leaseID}}},
		{Operation: &quorleasev1.RequestItem_Renew{Renew: &quorleasev1.RenewRequest{LeaseId: leaseID, Sequence: 1}}},
		{Operation: &quorleasev1.RequestItem_Peek{Peek: &quorleasev1.PeekRequest{Class: "x"}}},
	} {
		data, err := proto.Marshal(item)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		item := &quorleasev1.RequestItem{}
		if proto.Unmarshal(data, item) != nil {
			return
		}
		_, _ = convert.Patience(item, 0)
		op, err := operation(item)
		if err != nil || op == nil {
			return
		}
		// What was let through is well formed for the state machine too: the limit
		// or the lease may not be there, but no field is at fault.
		machine := fsm.New()
		results, _ := machine.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{op}})
		if r := results[0].GetRefusal(); r.GetCause() == logv1.Refusal_CAUSE_BAD_FIELD {
			t.Errorf("%v: %s: %s", op, r.GetField(), r.GetMessage())
		}
	})
}

func operation(item *quorleasev1.RequestItem) (*logv1.Operation, error) {
	switch r := item.GetOperation().(type) {
	case *quorleasev1.RequestItem_Acquire:
		return convert.Acquire(r.Acquire, "")
	case *quorleasev1.RequestItem_Settle:
		return convert.Settle(r.Settle, "")
	case *quorleasev1.RequestItem_Release:
		return convert.Release(r.Release, "")
	case *quorleasev1.RequestItem_Renew:
		return convert.Renew(r.Renew, "")
	case *quorleasev1.RequestItem_Peek:
		op, err := convert.Peek(r.Peek)
		return &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}}, err
	default:
		return nil, nil
	}
}
