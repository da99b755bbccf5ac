package fsm_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestEveryOperationIsApplied goes through the kinds that an operation can be:
// each is in the table of applyOne, also when it is empty.
func TestEveryOperationIsApplied(t *testing.T) {
	t.Parallel()
	kinds := (&logv1.Operation{}).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range kinds.Len() {
		t.Run(string(kinds.Get(i).Name()), func(t *testing.T) {
			t.Parallel()
			op := &logv1.Operation{}
			op.ProtoReflect().Set(kinds.Get(i), op.ProtoReflect().NewField(kinds.Get(i)))
			results, _ := fsm.New().Apply(1, &logv1.Entry{Operations: []*logv1.Operation{op}})
			if len(results) != 1 || results[0].GetKind() == nil {
				t.Fatalf("%v: %v", op, results)
			}
			if results[0].GetRefusal().GetField() == "operation" {
				t.Errorf("no function applies %v", op)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		results, _ := fsm.New().Apply(1, &logv1.Entry{Operations: []*logv1.Operation{{}, nil}})
		for _, r := range results {
			if r.GetRefusal().GetCause() != logv1.Refusal_CAUSE_BAD_FIELD {
				t.Errorf("%v, want a refusal", r)
			}
		}
	})
}

// TestDamagedEntriesAreCorrupt flips every bit of an entry, cuts it off and
// makes it longer.
func TestDamagedEntriesAreCorrupt(t *testing.T) {
	t.Parallel()
	good, err := fsm.EncodeEntry(fsmtest.Seeded(3).Entry())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fsm.DecodeEntry(good); err != nil {
		t.Fatal(err)
	}
	for bit := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		_, err := fsm.DecodeEntry(bad)
		want := fsm.ErrCorrupt
		if bad[0] > 1 {
			want = fsm.ErrNewerVersion
		}
		if !errors.Is(err, want) {
			t.Fatalf("bit %d: %v, want %v", bit, err, want)
		}
	}
	for n := range len(good) {
		if _, err := fsm.DecodeEntry(good[:n]); !errors.Is(err, fsm.ErrCorrupt) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	if _, err := fsm.DecodeEntry(append(bytes.Clone(good), 0)); !errors.Is(err, fsm.ErrCorrupt) {
		t.Fatalf("one byte more: %v", err)
	}
	long := &logv1.Entry{Operations: []*logv1.Operation{fsmtest.Acquire(strings.Repeat("x", fsm.MaxEntryBytes))}}
	long.Operations[0].GetAcquire().Owner = strings.Repeat("x", fsm.MaxEntryBytes)
	if _, err := fsm.EncodeEntry(long); err == nil {
		t.Fatal("an entry beyond the largest was encoded")
	}
}

// TestFieldsOfANewerProgramStopTheNode adds an unknown field to every message
// that an entry can contain: to ignore it would be to apply less than others.
func TestFieldsOfANewerProgramStopTheNode(t *testing.T) {
	t.Parallel()
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 500, protowire.VarintType), 1)
	fields := (&logv1.Operation{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		op := &logv1.Operation{}
		filled(op.ProtoReflect(), fields.Get(i))
		entry := &logv1.Entry{Operations: []*logv1.Operation{op}}
		for _, message := range messages(entry.ProtoReflect()) {
			kept := message.GetUnknown()
			message.SetUnknown(unknown)
			data, err := fsm.EncodeEntry(entry)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fsm.DecodeEntry(data); !errors.Is(err, fsm.ErrNewerVersion) {
				t.Errorf("%s in %s: %v, want %v", message.Descriptor().Name(), fields.Get(i).Name(), err, fsm.ErrNewerVersion)
			}
			message.SetUnknown(kept)
		}
		data, err := fsm.EncodeEntry(entry)
		if err != nil {
			t.Fatal(err)
		}
		read, err := fsm.DecodeEntry(data)
		if err != nil || !proto.Equal(read, entry) {
			t.Errorf("%v became %v, %v", entry, read, err)
		}
	}
}

// TestTextIsUTF8: text that is not can be neither written nor read, in whatever
// field it is. The generated decoder would let it pass.
func TestTextIsUTF8(t *testing.T) {
	t.Parallel()
	fields := (&logv1.Operation{}).ProtoReflect().Descriptor().Fields()
	texts := 0
	for i := range fields.Len() {
		op := &logv1.Operation{}
		filled(op.ProtoReflect(), fields.Get(i))
		entry := &logv1.Entry{Operations: []*logv1.Operation{op}}
		for _, message := range messages(entry.ProtoReflect()) {
			of := message.Descriptor().Fields()
			for j := range of.Len() {
				field := of.Get(j)
				if field.Kind() != protoreflect.StringKind || field.IsList() {
					continue
				}
				texts++
				message.Set(field, protoreflect.ValueOfString("\xff"))
				if _, err := fsm.EncodeEntry(entry); err == nil {
					t.Errorf("%s: was written", field.FullName())
				}
				data, err := entry.MarshalVT()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := fsm.DecodeEntry(enveloped(data)); !errors.Is(err, fsm.ErrCorrupt) {
					t.Errorf("%s: %v, want %v", field.FullName(), err, fsm.ErrCorrupt)
				}
				message.Clear(field)
			}
		}
	}
	if texts < 20 {
		t.Errorf("only %d texts were found", texts)
	}
}

// filled sets a field to a message in which every message field is set.
func filled(message protoreflect.Message, field protoreflect.FieldDescriptor) {
	switch {
	case field.Message() == nil:
	case field.IsList():
		element := message.Mutable(field).List().AppendMutable().Message()
		fillAll(element)
	default:
		fillAll(message.Mutable(field).Message())
	}
}

func fillAll(message protoreflect.Message) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		filled(message, fields.Get(i))
	}
}

// messages lists a message and all that are in it.
func messages(message protoreflect.Message) []protoreflect.Message {
	list := []protoreflect.Message{message}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				list = append(list, messages(value.List().Get(i).Message())...)
			}
		default:
			list = append(list, messages(value.Message())...)
		}
		return true
	})
	return list
}
