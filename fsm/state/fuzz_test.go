package state_test

import (
	"bytes"
	"testing"

	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	"github.com/quorlease/quorlease/fsm/state"
)

// FuzzForgedSnapshot reads snapshots whose sum and state hash are taken for
// right. What passes the checks of the records is a state: it can be saved,
// restored and lived with.
func FuzzForgedSnapshot(f *testing.F) {
	for _, entries := range []int{1, 6, 12, 25} {
		_, file := lived(f, entries)
		f.Add(file[9:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		forged, err := state.RestoreAnyway(bytes.NewReader(append([]byte("QUORLEAS\x01"), data...)))
		if err != nil {
			return
		}
		if forged.Hash() != forged.Recount() {
			t.Fatalf("hash %016x, recount %016x", forged.Hash(), forged.Recount())
		}
		var file bytes.Buffer
		if _, err := forged.Snapshot().WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		m, err := fsm.Restore(&file)
		if err != nil {
			t.Fatal(err)
		}
		if m.Hash() != forged.Hash() {
			t.Fatalf("hash %016x, restored %016x", forged.Hash(), m.Hash())
		}
		// Levels are in bounds that a forger may have stretched: what counts is
		// that nothing panics and the hash is kept up.
		world := fsmtest.Seeded(uint64(len(data)))
		for range 20 {
			entry := world.Entry()
			entry.Stamp += int64(m.Now())
			m.Apply(m.Index()+1, entry)
			if m.Hash() != m.Recount() {
				t.Fatalf("after %v: hash %016x, recount %016x", entry, m.Hash(), m.Recount())
			}
		}
	})
}
