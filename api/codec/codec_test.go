package codec_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/codec"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// TestTheBytesAreGRPCs: both codecs read what the other wrote, small and large,
// generated or not.
func TestTheBytesAreGRPCs(t *testing.T) {
	t.Parallel()
	ours, grpcs := codec.New(), encoding.GetCodecV2("proto")
	if ours.Name() != grpcs.Name() {
		t.Errorf("name is %q, want %q", ours.Name(), grpcs.Name())
	}
	small := &quorleasev1.AcquireRequest{Client: "c", Track: true, Charges: []*quorleasev1.Charge{
		{Limit: "gpt", Key: "k", Dimension: "requests", Amount: 1 << 50},
	}}
	large := proto.CloneOf(small)
	large.Charges[0].Key = strings.Repeat("x", 100_000)
	for name, message := range map[string]proto.Message{
		"small": small, "large": large, "empty": &quorleasev1.AcquireRequest{}, "not generated": durationpb.New(42),
	} {
		for from, pair := range map[string][2]encoding.CodecV2{
			"ours to ours": {ours, ours}, "ours to gRPC's": {ours, grpcs}, "gRPC's to ours": {grpcs, ours},
		} {
			data, err := pair[0].Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			// What was in it before does not shine through.
			read := message.ProtoReflect().New().Interface()
			if acquire, ok := read.(*quorleasev1.AcquireRequest); ok {
				acquire.Class = "left over"
			}
			if err := pair[1].Unmarshal(data, read); err != nil || !proto.Equal(read, message) {
				t.Errorf("%s, %s: %v, %v", name, from, read, err)
			}
			data.Free()
		}
	}
	if _, err := ours.Marshal("no message"); err == nil {
		t.Error("a string was taken for a message")
	}
	if err := ours.Unmarshal(mem.BufferSlice{mem.SliceBuffer("\x0a\x7f")}, &quorleasev1.AcquireRequest{}); err == nil {
		t.Error("half a message was read")
	}
}

// FuzzUnmarshal: what ours reads gRPC's reads, to the same message, if it is
// text; and ours refuses nothing that a client of any version could have sent: a
// known field of another wire type is a mistake to ours and unknown to gRPC's.
func FuzzUnmarshal(f *testing.F) {
	ours, grpcs := codec.New(), encoding.GetCodecV2("proto")
	f.Add([]byte("\x12\x05\x0a\x03\x08\x01\x1a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := &quorleasev1.SessionRequest{}, &quorleasev1.SessionRequest{}
		kept := bytes.Clone(data)
		theirs := grpcs.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, a)
		err := ours.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, b)
		switch {
		case theirs != nil:
			// Not one message, or not text.
		case err == nil && !proto.Equal(known(t, a), known(t, b)):
			t.Fatalf("%x: %v and %v", data, a, b)
		case err != nil && !strings.Contains(err.Error(), "wrong wireType"):
			t.Fatalf("%x: %v", data, err)
		}
		if !bytes.Equal(data, kept) {
			t.Fatal("the bytes were changed")
		}
	})
}

// known is a message without what this program does not know of it, which both
// keep as it came: the same field can be written in more than one way.
func known(t *testing.T, message proto.Message) proto.Message {
	t.Helper()
	data, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	out := message.ProtoReflect().New().Interface()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}
