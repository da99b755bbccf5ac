package convert_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/match"
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
		{Operation: &quorleasev1.RequestItem_Refresh{Refresh: &quorleasev1.RefreshRequest{
			Held: []*quorleasev1.HeldShare{{Limit: "a", Version: 3}},
		}}},
	} {
		data, err := proto.Marshal(item)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		item := &quorleasev1.RequestItem{}
		// The decoder that the server uses: text need not be text.
		if item.UnmarshalVT(data) != nil {
			return
		}
		_, _ = convert.Patience(item, 0)
		op, err := operation(item)
		if err != nil || op == nil {
			return
		}
		// What was let through is well formed for the state machine too: the limit
		// or the lease may not be there, but no field is at fault.
		entry := &logv1.Entry{Operations: []*logv1.Operation{op}}
		if _, err := fsm.EncodeEntry(entry); err != nil {
			t.Errorf("%v: %v", op, err)
		}
		machine := fsm.New()
		results, _ := machine.Apply(1, entry)
		if r := results[0].GetRefusal(); r.GetCause() == logv1.Refusal_CAUSE_BAD_FIELD {
			t.Errorf("%v: %s: %s", op, r.GetField(), r.GetMessage())
		}
	})
}

// TestA22EveryTextIsChecked: the decoder lets pass what is not UTF-8, so every
// text of a request has to be looked at here. A field added later is found too.
func TestA22EveryTextIsChecked(t *testing.T) {
	t.Parallel()
	kinds := (&quorleasev1.RequestItem{}).ProtoReflect().Descriptor().Oneofs().ByName("operation").Fields()
	texts := 0
	for i := range kinds.Len() {
		item := &quorleasev1.RequestItem{}
		message := item.ProtoReflect().Mutable(kinds.Get(i)).Message()
		for _, bad := range garble(message) {
			bad.set()
			texts++
			if op, err := operation(item); err == nil || op != nil && op.GetAcquire() == nil ||
				!strings.Contains(err.Error(), bad.field) || !strings.Contains(err.Error(), `\xff`) {
				t.Errorf("%s of %s: %v", bad.field, kinds.Get(i).Name(), err)
			}
			bad.reset()
		}
	}
	if texts < 15 {
		t.Errorf("only %d texts were found", texts)
	}
	for _, hello := range []*quorleasev1.Hello{
		{Client: "\xff", SessionId: leaseID}, {Client: "c", SessionId: "\xff"},
	} {
		if _, err := convert.Hello(hello); err == nil || !strings.Contains(err.Error(), `\xff`) {
			t.Errorf("%v: %v", hello, err)
		}
	}
}

// TestA22EveryTextOfAReportIsChecked does the same for reports, which no session
// carries.
func TestA22EveryTextOfAReportIsChecked(t *testing.T) {
	t.Parallel()
	r := &quorleasev1.ReportRequest{}
	texts := garble(r.ProtoReflect())
	for _, bad := range texts {
		bad.set()
		if op, err := convert.Report(r, ""); err == nil || op != nil ||
			!strings.Contains(err.Error(), bad.field) || !strings.Contains(err.Error(), `\xff`) {
			t.Errorf("%s: %v", bad.field, err)
		}
		bad.reset()
	}
	if len(texts) != 12 {
		t.Errorf("%d texts were found, want 12", len(texts))
	}
}

// heardOf is the operation of the answers of providers that name their buckets.
func heardOf(r *quorleasev1.ReportRequest) *logv1.Feedback {
	op := &logv1.Feedback{Client: r.GetClient()}
	for _, f := range r.GetFeedback() {
		if convert.Heard(f, r.GetClient()) == nil {
			op.Signals = append(op.Signals, convert.Signal(f, match.Target{Limit: f.GetLimit(), Key: f.GetKey()}))
		}
	}
	return op
}

// FuzzReport is FuzzRequest for reports.
func FuzzReport(f *testing.F) {
	data, err := proto.Marshal(report(func(*quorleasev1.ReportRequest) {}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &quorleasev1.ReportRequest{}
		if r.UnmarshalVT(data) != nil {
			return
		}
		op, err := convert.Report(r, "")
		if err != nil {
			return
		}
		entry := &logv1.Entry{}
		if op != nil {
			entry.Operations = append(entry.Operations, op)
		}
		if heard := heardOf(r); len(heard.GetSignals()) > 0 {
			entry.Operations = append(entry.Operations, &logv1.Operation{Kind: &logv1.Operation_Feedback{Feedback: heard}})
		}
		if _, err := fsm.EncodeEntry(entry); err != nil {
			t.Errorf("%v: %v", op, err)
		}
		results, _ := fsm.New().Apply(1, entry)
		for i, result := range results {
			if result.GetAdmitted() == nil && result.GetFeedback() == nil {
				t.Errorf("%v: %v", entry.GetOperations()[i], result)
			}
		}
	})
}

// garbled is one text of a message.
type garbled struct {
	field      string
	set, reset func()
}

// garble lists all text in a message, one element in every list.
func garble(message protoreflect.Message) []garbled {
	var list []garbled
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.Kind() == protoreflect.StringKind:
			list = append(list, garbled{
				field: string(field.Name()),
				set:   func() { message.Set(field, protoreflect.ValueOfString("\xff")) },
				reset: func() { message.Clear(field) },
			})
		case field.IsMap():
			key, value := protoreflect.ValueOfString("a").MapKey(), protoreflect.ValueOfString("\xff")
			if field.MapValue().Kind() != protoreflect.StringKind {
				key, value = protoreflect.ValueOfString("\xff").MapKey(), protoreflect.ValueOfInt64(1)
			}
			list = append(list, garbled{
				field: string(field.Name()),
				set:   func() { message.Mutable(field).Map().Set(key, value) },
				reset: func() { message.Clear(field) },
			})
		case field.IsList() && field.Message() != nil:
			list = append(list, garble(message.Mutable(field).List().AppendMutable().Message())...)
		case field.Message() != nil && field.Message().ParentFile() == message.Descriptor().ParentFile():
			list = append(list, garble(message.Mutable(field).Message())...)
		}
	}
	return list
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
	case *quorleasev1.RequestItem_Refresh:
		said, err := convert.Refresh(r.Refresh, []byte("sixteen bytes..."), "")
		if err != nil {
			return nil, err
		}
		return &logv1.Operation{Kind: &logv1.Operation_ReportShares{ReportShares: said}}, nil
	default:
		return nil, nil
	}
}
