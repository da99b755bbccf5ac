package fsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// The envelope of an entry: the version, four bytes of CRC32C (Castagnoli) over
// version and message, big endian, and the message.
const (
	entryVersion = 1
	entryHead    = 5
	// MaxEntryBytes is the size of the largest entry. Batches are far smaller;
	// a limits file may be half a megabyte.
	MaxEntryBytes = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeEntry makes the bytes that go into the log.
func EncodeEntry(entry *logv1.Entry) ([]byte, error) {
	data := make([]byte, entryHead, entryHead+proto.Size(entry))
	data[0] = entryVersion
	data, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(data, entry)
	if err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	if len(data) > MaxEntryBytes {
		return nil, fmt.Errorf("encode entry: %d bytes, at most %d", len(data), MaxEntryBytes)
	}
	binary.BigEndian.PutUint32(data[1:entryHead], entrySum(data))
	return data, nil
}

// DecodeEntry reads what EncodeEntry made. The error is ErrNewerVersion or
// ErrCorrupt. The entry shares nothing with data.
func DecodeEntry(data []byte) (*logv1.Entry, error) {
	switch {
	case len(data) < entryHead || len(data) > MaxEntryBytes:
		return nil, fmt.Errorf("decode entry of %d bytes: %w", len(data), ErrCorrupt)
	case data[0] > entryVersion:
		return nil, fmt.Errorf("decode entry of version %d, this program reads up to %d: %w",
			data[0], entryVersion, ErrNewerVersion)
	case data[0] < entryVersion:
		return nil, fmt.Errorf("decode entry of version %d: %w", data[0], ErrCorrupt)
	case binary.BigEndian.Uint32(data[1:entryHead]) != entrySum(data):
		return nil, fmt.Errorf("decode entry of %d bytes: checksum differs: %w", len(data), ErrCorrupt)
	}
	entry := &logv1.Entry{}
	if err := proto.Unmarshal(data[entryHead:], entry); err != nil {
		return nil, fmt.Errorf("decode entry: %w: %w", ErrCorrupt, err)
	}
	if !knowsEntry(entry) {
		return nil, fmt.Errorf("decode entry: it has fields that this program does not know: %w", ErrNewerVersion)
	}
	return entry, nil
}

func entrySum(data []byte) uint32 {
	sum := crc32.Update(0, castagnoli, data[:1])
	return crc32.Update(sum, castagnoli, data[entryHead:])
}

// knowsEntry says that no part of an entry has a field that this program does not
// know. To ignore one would be to apply less than others do. The operations
// that come by the thousand are looked at without reflection.
func knowsEntry(entry *logv1.Entry) bool {
	if !plain(entry) {
		return false
	}
	for _, op := range entry.GetOperations() {
		if !plain(op) || !knowsOperation(op) {
			return false
		}
	}
	return true
}

func knowsOperation(op *logv1.Operation) bool {
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Acquire:
		if !plain(kind.Acquire) {
			return false
		}
		for _, c := range kind.Acquire.GetCharges() {
			if !plain(c) {
				return false
			}
		}
		return true
	case *logv1.Operation_Settle:
		return plain(kind.Settle) && knowsUsages(kind.Settle.GetUsed())
	case *logv1.Operation_Renew:
		return plain(kind.Renew) && knowsUsages(kind.Renew.GetUsed())
	case *logv1.Operation_Release:
		return plain(kind.Release)
	}
	return knows(op.ProtoReflect())
}

func knowsUsages(usages []*logv1.Usage) bool {
	for _, u := range usages {
		if !plain(u) {
			return false
		}
	}
	return true
}

func plain(message proto.Message) bool { return len(message.ProtoReflect().GetUnknown()) == 0 }

// knows looks through a message of any type.
func knows(message protoreflect.Message) bool {
	known := len(message.GetUnknown()) == 0
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				known = known && knows(value.List().Get(i).Message())
			}
		default:
			known = known && knows(value.Message())
		}
		return known
	})
	return known
}
