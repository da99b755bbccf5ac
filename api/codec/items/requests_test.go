package items

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

func asked(seq uint64, change func(*quorleasev1.AcquireRequest)) *quorleasev1.RequestItem {
	revision := uint64(7)
	r := &quorleasev1.AcquireRequest{
		Client: "web", Class: "live", Attempt: 2, KnownRevision: &revision,
		Charges: []*quorleasev1.Charge{{Limit: "api", Key: "k", Dimension: "requests", Amount: 3}},
	}
	if change != nil {
		change(r)
	}
	return &quorleasev1.RequestItem{
		Seq: seq, Timeout: &durationpb.Duration{Seconds: 1, Nanos: 500},
		Operation: &quorleasev1.RequestItem_Acquire{Acquire: r},
	}
}

// requests are messages of all sorts, as clients send them.
func requests() []*quorleasev1.SessionRequest {
	bare := asked(1<<40, func(r *quorleasev1.AcquireRequest) {
		r.Client, r.Class, r.Attempt, r.KnownRevision = "", "", 0, nil
	})
	bare.Timeout = nil
	two := asked(3, func(r *quorleasev1.AcquireRequest) { r.Charges = append(r.Charges, &quorleasev1.Charge{Limit: "b"}) })
	tracked := asked(4, func(r *quorleasev1.AcquireRequest) {
		r.Track, r.LeaseId = true, "0123456789abcdef0123456789abcdef"
	})
	waits := asked(5, func(r *quorleasev1.AcquireRequest) { r.MaxWait = durationpb.New(5) })
	described := asked(6, func(r *quorleasev1.AcquireRequest) {
		r.Attributes, r.Amounts, r.Charges = map[string]string{"model": "m"}, map[string]int64{"tokens": 5}, nil
	})
	cancel := &quorleasev1.RequestItem{
		Seq: 9, Operation: &quorleasev1.RequestItem_Cancel{Cancel: &quorleasev1.CancelItem{}},
	}
	var all []*quorleasev1.SessionRequest
	for _, list := range [][]*quorleasev1.RequestItem{
		nil,
		{asked(0, nil)},
		{asked(1, nil), bare, asked(2, nil)},
		{two, asked(1, nil), tracked},
		{waits, described, cancel, {}},
	} {
		all = append(all, &quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Items{
			Items: &quorleasev1.RequestItems{Items: list},
		}})
	}
	hello := &quorleasev1.Hello{Client: "web", SessionId: "x", Connection: 1}
	return append(all, &quorleasev1.SessionRequest{},
		&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Hello{Hello: hello}})
}

// same compares what was received with what the generated code makes of it. What plain
// items are is looked at first, so that what is kept was written over.
func same(t *testing.T, r *Requests, want *quorleasev1.SessionRequest) {
	t.Helper()
	_, carries := want.GetKind().(*quorleasev1.SessionRequest_Items)
	list := want.GetItems().GetItems()
	if carries != r.Carries || !carries && !proto.Equal(r.Other, want) {
		t.Fatalf("carries items: %t; else %v; want %v", r.Carries, r.Other, want)
	}
	if len(r.Items) != len(list) {
		t.Fatalf("%d items, want %d", len(r.Items), len(list))
	}
	var kept []*quorleasev1.RequestItem
	for i, item := range list {
		if plain := r.Plain(i); plain != nil && !proto.Equal(plain, item) {
			t.Errorf("item %d is %v, want %v", i, plain, item)
		}
		kept = append(kept, r.Item(i))
	}
	for i, item := range list {
		if !proto.Equal(kept[i], item) {
			t.Errorf("item %d is kept as %v, want %v", i, kept[i], item)
		}
	}
}

// TestRequests: requests are those that the generated code reads, message after message
// into the same memory.
func TestRequests(t *testing.T) {
	t.Parallel()
	var r Requests
	plain := 0
	for _, message := range requests() {
		wire, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		r.Reset()
		if err := r.UnmarshalVT(wire); err != nil {
			t.Fatal(err)
		}
		clear(wire)
		same(t, &r, message)
		for i, item := range message.GetItems().GetItems() {
			if r.Plain(i) != nil {
				plain++
			}
			if got := r.Size(i); got != item.SizeVT() {
				t.Errorf("item %d has %d bytes, want %d", i, got, item.SizeVT())
			}
		}
	}
	if plain != 5 {
		t.Errorf("%d acquires are plain, want 5", plain)
	}
}

// FuzzRequests: whatever comes is read as the generated code reads it, or refused as it
// refuses it.
func FuzzRequests(f *testing.F) {
	for _, message := range requests() {
		wire, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
		f.Add(append(wire, wire...))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var r Requests
		var want quorleasev1.SessionRequest
		err, wantErr := r.UnmarshalVT(wire), want.UnmarshalVT(wire)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err == nil {
			same(t, &r, &want)
		}
	})
}

// TestReply: answers that were encoded one by one are the message that they would be
// together.
func TestReply(t *testing.T) {
	t.Parallel()
	var r Reply
	for _, message := range answers() {
		r.Reset()
		for _, item := range message.GetItems().GetItems() {
			part, err := Append(nil, item)
			if err != nil {
				t.Fatal(err)
			}
			r.Add(part)
		}
		wire := make([]byte, r.SizeVT())
		if n, err := r.MarshalToSizedBufferVT(wire); err != nil || n != len(wire) {
			t.Fatalf("%d bytes of %d, %v", n, len(wire), err)
		}
		var got quorleasev1.SessionResponse
		if err := proto.Unmarshal(wire, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(message.GetItems().GetItems(), got.GetItems().GetItems(), protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestRequestsAllocate: acquires one after the other are their message's texts.
func TestRequestsAllocate(t *testing.T) {
	wire, err := proto.Marshal(requests()[2])
	if err != nil {
		t.Fatal(err)
	}
	var r Requests
	got := testing.AllocsPerRun(100, func() {
		r.Reset()
		if err := r.UnmarshalVT(wire); err != nil {
			t.Fatal(err)
		}
		for i := range r.Items {
			if r.Plain(i) == nil {
				t.Fatal("not plain")
			}
		}
	})
	if got > 1 {
		t.Errorf("%v allocations, want 1", got)
	}
}
