// Package wire calls gRPC services of others by messages that are put together by
// hand: a few fields each, for which no generated code and no client library is
// worth having.
package wire

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// Message is an encoded message. It is appended to field by field.
type Message []byte

// Bytes appends a field of bytes, text, or a message.
func (m Message) Bytes(number protowire.Number, value []byte) Message {
	m = protowire.AppendTag(m, number, protowire.BytesType)
	return protowire.AppendBytes(m, value)
}

// Text appends a field of text.
func (m Message) Text(number protowire.Number, value string) Message {
	m = protowire.AppendTag(m, number, protowire.BytesType)
	return protowire.AppendString(m, value)
}

// Number appends a field of an integer or an enumeration.
func (m Message) Number(number protowire.Number, value int64) Message {
	m = protowire.AppendTag(m, number, protowire.VarintType)
	return protowire.AppendVarint(m, uint64(value))
}

// Field is one that was read. Number has its Value where that is an integer, and
// its Bytes where it is anything of a length.
type Field struct {
	Number protowire.Number
	Value  int64
	Bytes  []byte
}

// errMalformed: no message.
var errMalformed = errors.New("not a message")

// Fields hands every field to see, in order.
func (m Message) Fields(see func(Field)) error {
	for rest := []byte(m); len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return fmt.Errorf("read a field: %w", errMalformed)
		}
		rest = rest[n:]
		f := Field{Number: number}
		switch kind {
		case protowire.VarintType:
			var value uint64
			value, n = protowire.ConsumeVarint(rest)
			f.Value = int64(value)
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(rest)
		case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
			n = protowire.ConsumeFieldValue(number, kind, rest)
		}
		if n < 0 {
			return fmt.Errorf("read field %d: %w", number, errMalformed)
		}
		rest = rest[n:]
		see(f)
	}
	return nil
}

// First is the first field of that number, or the zero Field.
func (m Message) First(number protowire.Number) (found Field, err error) {
	seen := false
	err = m.Fields(func(f Field) {
		if f.Number == number && !seen {
			found, seen = f, true
		}
	})
	return found, err
}

// envelope is a message as api/codec takes it: as it is.
type envelope struct{ message Message }

// Reset empties it.
func (e *envelope) Reset() { e.message = nil }

// SizeVT is its size on the wire.
func (e *envelope) SizeVT() int { return len(e.message) }

// MarshalToSizedBufferVT copies it.
func (e *envelope) MarshalToSizedBufferVT(to []byte) (int, error) { return copy(to, e.message), nil }

// UnmarshalVT keeps a copy.
func (e *envelope) UnmarshalVT(from []byte) error {
	e.message = append(Message(nil), from...)
	return nil
}

// Call calls a method, such as "/etcdserverpb.KV/Range". The connection must be of
// bench.Dial, or use api/codec otherwise.
func Call(ctx context.Context, conn *grpc.ClientConn, method string, request Message) (Message, error) {
	var answer envelope
	err := conn.Invoke(ctx, method, &envelope{request}, &answer)
	return answer.message, err
}
