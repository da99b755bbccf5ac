// Package codec is gRPC's "proto" codec without reflection.
//
// Messages of this module come with generated methods that encode and decode
// them in about a third of the time; every other message (health, reflection)
// goes through gRPC's own codec. The bytes are the same. One thing is not: the
// generated decoder lets text pass that is not valid UTF-8. So it is for those
// who check all text themselves, which api/server does, field by field.
package codec

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is fallen back to
	"google.golang.org/grpc/mem"
)

// generated is what the generator adds to a message.
type generated interface {
	Reset()
	SizeVT() int
	MarshalToSizedBufferVT(to []byte) (int, error)
	UnmarshalVT(from []byte) error
}

// Codec implements encoding.CodecV2. It has no state and is safe for concurrent
// use.
type Codec struct{ encoding.CodecV2 }

// New returns the codec.
func New() Codec { return Codec{encoding.GetCodecV2("proto")} }

// Marshal encodes v, a message.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(generated)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := message.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		buffer := make([]byte, size)
		_, err := message.MarshalToSizedBufferVT(buffer)
		return mem.BufferSlice{mem.SliceBuffer(buffer)}, err
	}
	pool := mem.DefaultBufferPool()
	buffer := pool.Get(size)
	if _, err := message.MarshalToSizedBufferVT((*buffer)[:size]); err != nil {
		pool.Put(buffer)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, pool)}, nil
}

// Unmarshal decodes into v, a message, which keeps nothing of data.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(generated)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	message.Reset()
	return message.UnmarshalVT(buffer.ReadOnlyData())
}
