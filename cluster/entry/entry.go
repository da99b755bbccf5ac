// Package entry is a log entry as raft keeps it: the state machine's encoding,
// compressed.
//
// The names in an entry repeat with every operation. Compressed they take a
// third, and what two disks write one after the other is what a commit waits for.
package entry

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
)

// format is the first byte: one S2 block follows.
const format = 1

// Encode returns the bytes of an entry, in a buffer of its own. It refuses what
// fsm.EncodeEntry refuses. Safe for concurrent use.
func Encode(e *logv1.Entry) ([]byte, error) {
	data, err := fsm.EncodeEntry(e)
	if err != nil {
		return nil, err
	}
	packed := make([]byte, 1+s2.MaxEncodedLen(len(data)))
	packed[0] = format
	packed = packed[:1+len(s2.Encode(packed[1:], data))]
	// The log cache keeps thousands of these: no more room than is used.
	return bytes.Clone(packed), nil
}

// Decoder reads what Encode made. The zero value is ready. It is for one
// goroutine.
type Decoder struct {
	buffer []byte
	state  fsm.EntryDecoder
}

// Decode returns the entry that the log has in term, which shares nothing with
// packed. A stamp of another term is left out: an old stamp does nothing (T4).
// The error is fsm.ErrNewerVersion or fsm.ErrCorrupt. Lengths are checked before
// anything is allocated.
func (d *Decoder) Decode(packed []byte, term uint64) (*logv1.Entry, error) {
	e, err := d.decode(packed)
	if err == nil && e.GetTerm() != term {
		e.Stamp = 0
	}
	return e, err
}

func (d *Decoder) decode(packed []byte) (*logv1.Entry, error) {
	switch {
	case len(packed) > 0 && packed[0] > format:
		return nil, fmt.Errorf("decode entry of format %d, this program reads up to %d: %w",
			packed[0], format, fsm.ErrNewerVersion)
	case len(packed) == 0 || packed[0] < format:
		return nil, fmt.Errorf("decode entry of %d bytes: %w", len(packed), fsm.ErrCorrupt)
	}
	size, err := s2.DecodedLen(packed[1:])
	if err != nil {
		return nil, fmt.Errorf("decode entry: %w: %w", fsm.ErrCorrupt, err)
	}
	if size > fsm.MaxEntryBytes {
		return nil, fmt.Errorf("decode entry: %w: %d bytes, at most %d", fsm.ErrCorrupt, size, fsm.MaxEntryBytes)
	}
	d.buffer = slices.Grow(d.buffer[:0], size)[:size]
	data, err := s2.Decode(d.buffer, packed[1:])
	if err != nil {
		return nil, fmt.Errorf("decode entry: %w: %w", fsm.ErrCorrupt, err)
	}
	return d.state.Decode(data)
}
