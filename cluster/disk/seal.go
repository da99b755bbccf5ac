package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// What Raft stores has no checksum of its own: a flipped bit in a term or a
// vote would make a node vote twice, one in an entry's term would fork the log.
// So a CRC-32C goes with every value and every entry, and what does not fit is
// an error, which stops the node (R14, R17).

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealBytes is the length of a checksum.
const sealBytes = crc32.Size

// sealValue returns the value as it is stored, with the checksum behind it. The
// key is part of it: a value under another's key is as wrong as a flipped bit.
func sealValue(key, value []byte) []byte {
	sealed := make([]byte, 0, len(value)+sealBytes)
	sealed = append(sealed, value...)
	return binary.BigEndian.AppendUint32(sealed, valueSum(key, value))
}

func valueSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// unsealValue is the inverse of sealValue.
func unsealValue(key, sealed []byte) ([]byte, error) {
	n := len(sealed) - sealBytes
	if n < 0 {
		return nil, fmt.Errorf("value of %q %w: %d bytes, too short for a checksum", key, ErrCorrupt, len(sealed))
	}
	value := sealed[:n:n]
	if got, want := valueSum(key, value), binary.BigEndian.Uint32(sealed[n:]); got != want {
		return nil, fmt.Errorf("value of %q %w: checksum %08x, stored was %08x", key, ErrCorrupt, got, want)
	}
	return value, nil
}

// sealLog returns a copy of the entry whose extensions end with a checksum. The
// entry itself is shared with Raft's cache and its replication, and must not be
// touched (R5).
func sealLog(log *raft.Log) *raft.Log {
	sealed := *log
	sealed.Extensions = make([]byte, 0, len(log.Extensions)+sealBytes)
	sealed.Extensions = append(sealed.Extensions, log.Extensions...)
	sealed.Extensions = binary.BigEndian.AppendUint32(sealed.Extensions, logSum(log))
	return &sealed
}

// logSum leaves AppendedAt out: nothing depends on it, and what a time looks
// like after decoding is the encoding's business (R41).
func logSum(log *raft.Log) uint32 {
	var head [25]byte
	binary.BigEndian.PutUint64(head[0:], log.Index)
	binary.BigEndian.PutUint64(head[8:], log.Term)
	head[16] = byte(log.Type)
	binary.BigEndian.PutUint64(head[17:], uint64(len(log.Data)))
	sum := crc32.Checksum(head[:], castagnoli)
	sum = crc32.Update(sum, castagnoli, log.Data)
	return crc32.Update(sum, castagnoli, log.Extensions)
}

// unsealLog checks an entry that was read and takes the checksum off it. index
// is where it was read from.
func unsealLog(index uint64, log *raft.Log) error {
	n := len(log.Extensions) - sealBytes
	if n < 0 {
		return fmt.Errorf("entry %d %w: no checksum", index, ErrCorrupt)
	}
	want := binary.BigEndian.Uint32(log.Extensions[n:])
	log.Extensions = log.Extensions[:n:n]
	if n == 0 {
		log.Extensions = nil
	}
	switch got := logSum(log); {
	case got != want:
		return fmt.Errorf("entry %d %w: checksum %08x, stored was %08x", index, ErrCorrupt, got, want)
	case log.Index != index:
		return fmt.Errorf("entry %d %w: it says that it is entry %d", index, ErrCorrupt, log.Index)
	}
	return nil
}
