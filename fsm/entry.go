package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/look"
	"github.com/quorlease/quorlease/fsm/unpack"
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

// EncodeEntry makes the bytes that go into the log. It refuses text that is not
// valid UTF-8, and what is larger than MaxEntryBytes.
func EncodeEntry(entry *logv1.Entry) ([]byte, error) {
	if look.Through(entry).Garbled {
		return nil, errors.New("encode entry: it has text that is not valid UTF-8")
	}
	size := entry.SizeVT()
	if size > MaxEntryBytes-entryHead {
		return nil, fmt.Errorf("encode entry: %d bytes, at most %d", size+entryHead, MaxEntryBytes)
	}
	data := make([]byte, entryHead+size)
	data[0] = entryVersion
	if _, err := entry.MarshalToSizedBufferVT(data[entryHead:]); err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	binary.BigEndian.PutUint32(data[1:entryHead], entrySum(data))
	return data, nil
}

// EntryDecoder reads what EncodeEntry made. The zero value is ready. It is for one
// goroutine.
type EntryDecoder struct{ messages unpack.Decoder }

// DecodeEntry reads one entry.
func DecodeEntry(data []byte) (*logv1.Entry, error) { return new(EntryDecoder).Decode(data) }

// Decode reads an entry, which shares nothing with data. The error is
// ErrNewerVersion or ErrCorrupt.
func (d *EntryDecoder) Decode(data []byte) (*logv1.Entry, error) {
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
	entry, found, err := d.messages.Entry(data[entryHead:])
	switch {
	case err != nil:
		return nil, fmt.Errorf("decode entry: %w: %w", ErrCorrupt, err)
	case found.Unknown:
		return nil, fmt.Errorf("decode entry: it has fields that this program does not know: %w", ErrNewerVersion)
	case found.Garbled:
		return nil, fmt.Errorf("decode entry: it has text that is not valid UTF-8: %w", ErrCorrupt)
	}
	return entry, nil
}

func entrySum(data []byte) uint32 {
	sum := crc32.Update(0, castagnoli, data[:1])
	return crc32.Update(sum, castagnoli, data[entryHead:])
}
