package fsm_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// enveloped gives bytes the envelope of an entry.
func enveloped(message []byte) []byte {
	data := append([]byte{1, 0, 0, 0, 0}, message...)
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.BigEndian.PutUint32(data[1:], crc32.Update(crc32.Checksum(data[:1], table), table, message))
	return data
}

// FuzzDecodeEntry reads bytes as they are and in an envelope. Whatever can be
// read can be applied, and is read again after it was written.
func FuzzDecodeEntry(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0})
	world := fsmtest.Seeded(1)
	for range 20 {
		data, err := fsm.EncodeEntry(world.Entry())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[5:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, bytes := range [][]byte{data, enveloped(data)} {
			entry, err := fsm.DecodeEntry(bytes)
			if err != nil {
				if !errors.Is(err, fsm.ErrCorrupt) && !errors.Is(err, fsm.ErrNewerVersion) {
					t.Fatalf("%x: %v", bytes, err)
				}
				continue
			}
			again, err := fsm.EncodeEntry(entry)
			if err != nil {
				t.Fatalf("%v: %v", entry, err)
			}
			if read, err := fsm.DecodeEntry(again); err != nil || !proto.Equal(read, entry) {
				t.Fatalf("%v became %v, %v", entry, read, err)
			}
			d := fsmtest.New(t)
			d.Entry(&logv1.Entry{Operations: []*logv1.Operation{fsmtest.Apply(
				fsmtest.Limit("l0", fsmtest.Dimension(t, "requests", "1/1s", 10)))}})
			d.Entry(entry)
			d.Entry(entry)
		}
	})
}

// FuzzApply makes operations of bytes, in a small universe in which they meet.
// The driver checks that the hash is that of a recount and that levels are in
// range; in the end the state must survive a snapshot.
func FuzzApply(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		world, ended := fsmtest.FromBytes(data)
		if len(data) > 0 {
			world.Feedback, world.Whole = data[0]&0x40 != 0, data[0]&0x80 != 0
			world.Escrow = data[0]&0x20 != 0
		}
		d := fsmtest.New(t)
		for range 200 {
			if ended() {
				break
			}
			d.Entry(world.Entry())
		}
		restored := fsmtest.Restored(t, d.Machine)
		if d.Hash() != restored.Hash() {
			t.Fatalf("hash %016x, restored %016x", d.Hash(), restored.Hash())
		}
		entry := world.Entry()
		d.Entry(entry)
		restored.Apply(d.Index(), entry)
		if d.Hash() != restored.Hash() {
			t.Fatalf("one entry later: hash %016x, restored %016x", d.Hash(), restored.Hash())
		}
	})
}

// FuzzRestore reads bytes as a snapshot, as they are and with the right sum at
// the end. Nothing else than a good snapshot is restored.
func FuzzRestore(f *testing.F) {
	for seed := range uint64(4) {
		m := fsm.New()
		world := fsmtest.Seeded(seed)
		world.Feedback, world.Whole = seed%2 == 1, seed >= 2
		for range 12 {
			m.Apply(m.Index()+1, world.Entry())
		}
		data := fsmtest.Saved(f, m)
		f.Add(data)
		f.Add(data[:len(data)-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sum := sha256.Sum256(data)
		for _, file := range [][]byte{data, append(bytes.Clone(data), sum[:]...)} {
			m, err := fsm.Restore(bytes.NewReader(file))
			if err != nil {
				if !errors.Is(err, fsm.ErrCorrupt) && !errors.Is(err, fsm.ErrNewerVersion) {
					t.Fatal(err)
				}
				continue
			}
			if m.Hash() != m.Recount() || fsmtest.Restored(t, m).Hash() != m.Hash() {
				t.Fatalf("hash %016x, recount %016x", m.Hash(), m.Recount())
			}
		}
	})
}
