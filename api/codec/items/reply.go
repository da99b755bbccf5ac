package items

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Append encodes an answer behind others, as a part of a Reply.
func Append(to []byte, item *quorleasev1.ResponseItem) ([]byte, error) {
	size := item.SizeVT()
	to = protowire.AppendTag(to, listItem, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(size))
	start := len(to)
	to = append(to, make([]byte, size)...)
	if _, err := item.MarshalToSizedBufferVT(to[start:]); err != nil {
		return to, fmt.Errorf("encode answer %d: %w", item.GetSeq(), err)
	}
	return to, nil
}

// Reply is a SessionResponse as a node sends it: of answers that are encoded.
type Reply struct {
	parts [][]byte
	size  int
}

// Add adds answers, which must not change until the reply was sent.
func (r *Reply) Add(part []byte) {
	r.parts = append(r.parts, part)
	r.size += len(part)
}

// Len is how many bytes the answers take.
func (r *Reply) Len() int { return r.size }

// Reset forgets the answers.
func (r *Reply) Reset() {
	clear(r.parts)
	r.parts, r.size = r.parts[:0], 0
}

// SizeVT is the size on the wire.
func (r *Reply) SizeVT() int { return protowire.SizeTag(kindItems) + protowire.SizeBytes(r.size) }

// MarshalToSizedBufferVT encodes into a buffer of SizeVT bytes.
func (r *Reply) MarshalToSizedBufferVT(to []byte) (int, error) {
	at := protowire.AppendVarint(protowire.AppendTag(to[:0], kindItems, protowire.BytesType), uint64(r.size))
	n := len(at)
	for _, part := range r.parts {
		n += copy(to[n:], part)
	}
	return n, nil
}

// UnmarshalVT is what a codec asks for of what is received; this is only sent.
func (r *Reply) UnmarshalVT([]byte) error { return nil }
