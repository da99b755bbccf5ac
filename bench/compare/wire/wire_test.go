package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// TestMessage: what is put together by hand is what the generated code reads, and the
// other way round.
func TestMessage(t *testing.T) {
	t.Parallel()
	charge := Message(nil).Text(1, "limit").Bytes(2, []byte("key")).Number(4, -300)
	var read quorleasev1.Charge
	if err := proto.Unmarshal(charge, &read); err != nil {
		t.Fatal(err)
	}
	if read.GetLimit() != "limit" || read.GetKey() != "key" || read.GetAmount() != -300 {
		t.Errorf("read as %v", &read)
	}
	request, err := proto.Marshal(&quorleasev1.AcquireRequest{
		Client: "me", Charges: []*quorleasev1.Charge{&read, {Key: "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := Message(request).First(7)
	if diff := cmp.Diff([]byte(charge), first.Bytes); diff != "" || err != nil {
		t.Errorf("the first charge, %v (-want +got):\n%s", err, diff)
	}
	if none, err := Message(request).First(9); none.Number != 0 || err != nil {
		t.Errorf("a field that is not there: %+v, %v", none, err)
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	good := Message(nil).Text(1, "text").Number(2, 1<<40)
	for length := range len(good) {
		cut := good[:length]
		// Between two fields a message may end.
		if err := cut.Fields(func(Field) {}); err == nil && length != 0 && length != 6 {
			t.Errorf("cut to %d bytes: no error", length)
		}
	}
	if _, err := Message("\x0b").First(1); err == nil {
		t.Error("a group without an end: no error")
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	var e envelope
	if err := e.UnmarshalVT([]byte("abc")); err != nil || e.SizeVT() != 3 {
		t.Errorf("%q, %v", e.message, err)
	}
	to := make([]byte, 3)
	if n, err := e.MarshalToSizedBufferVT(to); n != 3 || err != nil || string(to) != "abc" {
		t.Errorf("%d, %v, %q", n, err, to)
	}
	e.Reset()
	if e.SizeVT() != 0 {
		t.Error("not empty")
	}
}
