package items

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

func granted(seq uint64) *quorleasev1.ResponseItem {
	return &quorleasev1.ResponseItem{Seq: seq, Answer: &quorleasev1.ResponseItem_Acquire{
		Acquire: &quorleasev1.AcquireResponse{
			Decision: quorleasev1.Decision_GRANTED, Source: quorleasev1.Source_ESCROW,
			Lease: &quorleasev1.Lease{
				Id:      "0123456789abcdef0123456789abcdef",
				Charges: []*quorleasev1.Charge{{Limit: "api", Key: "k", Dimension: "requests", Amount: 1 << 40}},
				Ttl:     &durationpb.Duration{Seconds: 5, Nanos: 7}, State: quorleasev1.LeaseState_OPEN,
			},
		},
	}}
}

// answers are messages of all sorts, as a node sends them.
func answers() []*quorleasev1.SessionResponse {
	two := granted(3)
	two.GetAcquire().Lease.Charges = append(two.GetAcquire().Lease.Charges, &quorleasev1.Charge{Limit: "b", Amount: 2})
	tracked := granted(300)
	tracked.GetAcquire().Lease.Tracked = true
	told := granted(1)
	told.GetAcquire().Fallbacks = &quorleasev1.Fallbacks{Revision: 7}
	denied := &quorleasev1.ResponseItem{Seq: 9, Answer: &quorleasev1.ResponseItem_Acquire{
		Acquire: &quorleasev1.AcquireResponse{
			Decision: quorleasev1.Decision_DENIED, Denials: []*quorleasev1.Denial{{Limit: "api"}},
		},
	}}
	wrong := &quorleasev1.ResponseItem{Answer: &quorleasev1.ResponseItem_Error{Error: &status.Status{Code: 3}}}
	var all []*quorleasev1.SessionResponse
	for _, list := range [][]*quorleasev1.ResponseItem{
		nil, {granted(0)}, {granted(1), granted(1 << 40), denied}, {two}, {tracked, told, wrong},
	} {
		all = append(all, &quorleasev1.SessionResponse{Kind: &quorleasev1.SessionResponse_Items{
			Items: &quorleasev1.ResponseItems{Items: list},
		}})
	}
	return append(all, &quorleasev1.SessionResponse{})
}

// TestAnswers: the answers are those that the generated code reads, message after
// message into the same memory, and earlier ones stay as they were.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var a Answers
	var kept, want []*quorleasev1.ResponseItem
	for _, message := range answers() {
		wire, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		a.Reset()
		if err := a.UnmarshalVT(wire); err != nil {
			t.Fatal(err)
		}
		clear(wire)
		kept, want = append(kept, a.Items...), append(want, message.GetItems().GetItems()...)
	}
	if diff := cmp.Diff(want, kept, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzAnswers: whatever comes is read as the generated code reads it, or refused as
// it refuses it.
func FuzzAnswers(f *testing.F) {
	for _, message := range answers() {
		wire, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
		f.Add(append(wire, wire...))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var a Answers
		var want quorleasev1.SessionResponse
		err, wantErr := a.UnmarshalVT(wire), want.UnmarshalVT(wire)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err != nil {
			return
		}
		list := want.GetItems().GetItems()
		if len(list) != len(a.Items) {
			t.Fatalf("%d answers, want %d", len(a.Items), len(list))
		}
		for i := range list {
			if !proto.Equal(list[i], a.Items[i]) {
				t.Errorf("answer %d is %v, want %v", i, a.Items[i], list[i])
			}
		}
	})
}

// TestAnswersAllocate: a grant is two pieces of memory, itself and its texts.
func TestAnswersAllocate(t *testing.T) {
	wire, err := proto.Marshal(answers()[1])
	if err != nil {
		t.Fatal(err)
	}
	var a Answers
	got := testing.AllocsPerRun(100, func() {
		a.Reset()
		if err := a.UnmarshalVT(wire); err != nil {
			t.Fatal(err)
		}
	})
	// And the copy of the message.
	if got > 3 {
		t.Errorf("%v allocations, want 3 at most", got)
	}
}
