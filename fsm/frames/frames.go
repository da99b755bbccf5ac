// Package frames reads and writes the stream that a snapshot is: a magic word with
// a version, then records, each with its length before it as a varint, then the
// SHA-256 of all that. It says nothing of what the records mean. A Writer and a
// Reader are for one goroutine.
package frames

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// What a log entry or a snapshot can be besides readable. Either stops the node:
// to pass over it would be to diverge (G9).
var (
	// ErrNewerVersion: a newer program wrote it.
	ErrNewerVersion = errors.New("written by a newer version of the program")
	// ErrCorrupt: it is not what was written.
	ErrCorrupt = errors.New("corrupt")
)

const (
	snapshotMagic   = "QUORLEAS"
	snapshotVersion = 1
	// maxRecord bounds a record. The largest is a limit with many versions or a
	// revision with many changes.
	maxRecord = 16 << 20
	ioBuffer  = 64 << 10
)

// Corrupt is an ErrCorrupt that says what is wrong.
func Corrupt(format string, values ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, values...), ErrCorrupt)
}

// Writer frames records, and keeps the first error.
type Writer struct {
	target  io.Writer
	out     *bufio.Writer
	hash    hash.Hash
	buffer  []byte
	written int64
	// Records counts what was written.
	Records uint64
	err     error
}

// NewWriter begins a stream.
func NewWriter(w io.Writer) *Writer {
	r := &Writer{target: w, hash: sha256.New()}
	r.out = bufio.NewWriterSize(io.MultiWriter(w, r.hash), ioBuffer)
	r.put(append([]byte(snapshotMagic), snapshotVersion))
	return r
}

func (r *Writer) put(data []byte) {
	if r.err != nil {
		return
	}
	n, err := r.out.Write(data)
	r.written += int64(n)
	r.err = err
}

// Write adds a record. The first error is kept for Close.
func (r *Writer) Write(record *logv1.SnapshotRecord) {
	if r.err != nil {
		return
	}
	size := proto.Size(record)
	if size > maxRecord {
		r.err = fmt.Errorf("record %d has %d bytes, at most %d", r.Records, size, maxRecord)
		return
	}
	r.buffer = binary.AppendUvarint(r.buffer[:0], uint64(size))
	r.buffer, r.err = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(r.buffer, record)
	r.put(r.buffer)
	r.Records++
}

// Close writes the sum, which is not part of itself.
func (r *Writer) Close() (int64, error) {
	if r.err == nil {
		r.err = r.out.Flush()
	}
	if r.err == nil {
		var n int
		n, r.err = r.target.Write(r.hash.Sum(nil))
		r.written += int64(n)
	}
	return r.written, r.err
}

// Reader takes records out of a stream.
type Reader struct {
	in     *bufio.Reader
	hash   hash.Hash
	buffer []byte
}

// NewReader reads a stream from its beginning.
func NewReader(source io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(source, ioBuffer), hash: sha256.New()}
}

// ReadHead reads the magic word and the version.
func (r *Reader) ReadHead() error {
	if err := r.fill(len(snapshotMagic) + 1); err != nil {
		return err
	}
	if !bytes.HasPrefix(r.buffer, []byte(snapshotMagic)) {
		return Corrupt("it does not begin with %s", snapshotMagic)
	}
	switch version := r.buffer[len(snapshotMagic)]; {
	case version > snapshotVersion:
		return fmt.Errorf("version %d, this program reads up to %d: %w", version, snapshotVersion, ErrNewerVersion)
	case version < snapshotVersion:
		return Corrupt("version %d", version)
	}
	return nil
}

// Read reads the next record. It does not know which one is the last.
func (r *Reader) Read() (*logv1.SnapshotRecord, error) {
	size, err := r.size()
	if err != nil {
		return nil, err
	}
	if size > maxRecord {
		return nil, Corrupt("%d bytes, at most %d", size, maxRecord)
	}
	r.buffer = binary.AppendUvarint(r.buffer[:0], size)
	r.hash.Write(r.buffer)
	if err := r.fill(int(size)); err != nil {
		return nil, err
	}
	record := &logv1.SnapshotRecord{}
	if err := proto.Unmarshal(r.buffer, record); err != nil {
		return nil, Corrupt("%v", err)
	}
	return record, nil
}

// size reads a length. The largest record has one of four bytes.
func (r *Reader) size() (size uint64, err error) {
	for shift := 0; shift < 35; shift += 7 {
		b, err := r.in.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		size |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return size, nil
		}
	}
	return 0, Corrupt("a length of more than five bytes")
}

// fill reads the next n bytes. A length is only a claim: memory grows with what
// has arrived.
func (r *Reader) fill(n int) error {
	if err := r.take(n); err != nil {
		return err
	}
	r.hash.Write(r.buffer)
	return nil
}

func (r *Reader) take(n int) error {
	r.buffer = r.buffer[:0]
	for len(r.buffer) < n {
		have, step := len(r.buffer), min(ioBuffer, n-len(r.buffer))
		r.buffer = slices.Grow(r.buffer, step)[:have+step]
		if _, err := io.ReadFull(r.in, r.buffer[have:]); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// ReadSum checks the sum, and that nothing comes after it.
func (r *Reader) ReadSum() error {
	want := r.hash.Sum(nil)
	if err := r.take(len(want)); err != nil {
		return err
	}
	if !bytes.Equal(want, r.buffer) {
		return Corrupt("the checksum differs")
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return Corrupt("there is more after the end")
	}
	return nil
}

// unexpected: a file that ends too early is corrupt; an error of the disk is
// itself.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Corrupt("it ends too early")
	}
	return err
}
