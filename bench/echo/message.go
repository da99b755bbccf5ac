package echo

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// PayloadBytes is the size of what is echoed, about that of an acquire.
const PayloadBytes = 56

// Item is one question or its answer.
type Item struct {
	Seq     uint64
	Payload [PayloadBytes]byte
}

// Batch is a message of items, on the wire what
//
//	message Batch { repeated Item items = 1; }
//	message Item { fixed64 seq = 1; bytes payload = 2; }
//
// would be. Its methods are those that api/codec looks for: no reflection, and one
// allocation for all items, so that the echo is as fast as gRPC lets it be.
type Batch struct{ Items []Item }

// The sizes on the wire: a tag and eight bytes, a tag, a length and the payload;
// around each item a tag and its length.
const (
	seqBytes     = 1 + 8
	payloadBytes = 1 + 1 + PayloadBytes
	itemBytes    = seqBytes + payloadBytes
	framedBytes  = 1 + 1 + itemBytes
)

var (
	itemTag    = byte(protowire.EncodeTag(1, protowire.BytesType))
	seqTag     = byte(protowire.EncodeTag(1, protowire.Fixed64Type))
	payloadTag = byte(protowire.EncodeTag(2, protowire.BytesType))
)

var errMalformed = errors.New("not a batch of items")

// Reset empties the batch and keeps its room.
func (b *Batch) Reset() { b.Items = b.Items[:0] }

// SizeVT is the size on the wire.
func (b *Batch) SizeVT() int { return len(b.Items) * framedBytes }

// MarshalToSizedBufferVT encodes into a buffer of SizeVT bytes.
func (b *Batch) MarshalToSizedBufferVT(to []byte) (int, error) {
	at := 0
	for i := range b.Items {
		item := &b.Items[i]
		to[at], to[at+1], to[at+2] = itemTag, itemBytes, seqTag
		binary.LittleEndian.PutUint64(to[at+3:], item.Seq)
		to[at+3+8], to[at+3+9] = payloadTag, PayloadBytes
		copy(to[at+3+10:], item.Payload[:])
		at += framedBytes
	}
	return at, nil
}

// UnmarshalVT decodes what MarshalToSizedBufferVT made, and nothing else.
func (b *Batch) UnmarshalVT(from []byte) error {
	if len(from)%framedBytes != 0 {
		return fmt.Errorf("%d bytes: %w", len(from), errMalformed)
	}
	for ; len(from) > 0; from = from[framedBytes:] {
		if from[0] != itemTag || from[1] != itemBytes || from[2] != seqTag ||
			from[3+8] != payloadTag || from[3+9] != PayloadBytes {
			return errMalformed
		}
		item := Item{Seq: binary.LittleEndian.Uint64(from[3:])}
		copy(item.Payload[:], from[3+10:])
		b.Items = append(b.Items, item)
	}
	return nil
}
