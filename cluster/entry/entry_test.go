package entry_test

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

func TestEntriesComeBack(t *testing.T) {
	t.Parallel()
	world := fsmtest.Seeded(1)
	var d entry.Decoder
	var kept []*logv1.Entry
	var read []*logv1.Entry
	for range 100 {
		e := world.Entry()
		packed, err := entry.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Decode(packed, 0)
		if err != nil {
			t.Fatal(err)
		}
		clear(packed)
		kept, read = append(kept, e), append(read, got)
	}
	// The decoder's buffer was used again for each, and none has changed.
	for i := range kept {
		if !proto.Equal(kept[i], read[i]) {
			t.Fatalf("entry %d: %v became %v", i, kept[i], read[i])
		}
	}
}

// TestT4AStampCountsInItsTerm: what was stamped in one term and got into the log
// in another moves no time.
func TestT4AStampCountsInItsTerm(t *testing.T) {
	t.Run("T4", func(t *testing.T) {
		packed, err := entry.Encode(&logv1.Entry{Stamp: 42, Wall: 1, Term: 3})
		if err != nil {
			t.Fatal(err)
		}
		var d entry.Decoder
		for term, want := range map[uint64]int64{3: 42, 5: 0} {
			if e, err := d.Decode(packed, term); err != nil || e.GetStamp() != want || e.GetWall() != 1 {
				t.Errorf("in term %d: %v, %v; want stamp %d", term, e, err, want)
			}
		}
	})
}

// TestNamesAreStoredOnce: an entry of a busy node is much smaller than what was
// asked.
func TestNamesAreStoredOnce(t *testing.T) {
	t.Parallel()
	e := &logv1.Entry{Stamp: 1}
	for range 64 {
		e.Operations = append(e.Operations, fsmtest.Acquire("tokens-per-minute"))
	}
	plain, err := fsm.EncodeEntry(e)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := entry.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > len(plain)/2 || cap(packed) > 2*len(packed) {
		t.Errorf("%d bytes became %d (%d allocated)", len(plain), len(packed), cap(packed))
	}
}

// TestDamagedEntriesAreCorrupt flips every bit of an entry, cuts it off and makes
// it longer.
func TestDamagedEntriesAreCorrupt(t *testing.T) {
	t.Parallel()
	good, err := entry.Encode(fsmtest.Seeded(3).Entry())
	if err != nil {
		t.Fatal(err)
	}
	var d entry.Decoder
	for bit := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		_, err := d.Decode(bad, 0)
		if !errors.Is(err, fsm.ErrCorrupt) && !errors.Is(err, fsm.ErrNewerVersion) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for n := range len(good) {
		if _, err := d.Decode(good[:n], 0); !errors.Is(err, fsm.ErrCorrupt) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	if _, err := d.Decode(append(bytes.Clone(good), 0), 0); !errors.Is(err, fsm.ErrCorrupt) {
		t.Fatalf("one byte more: %v", err)
	}
}

// TestALengthIsNoPromise: a length that a block only claims allocates nothing.
func TestALengthIsNoPromise(t *testing.T) {
	t.Parallel()
	for _, claim := range [][]byte{
		{1, 0xff, 0xff, 0xff, 0xff, 0x0f}, {1, 0xff, 0xff, 0xff, 0x7f}, {1, 0x81, 0x80, 0x80, 0x02}, {1}, {0, 1, 2}, {},
	} {
		var d entry.Decoder
		if _, err := d.Decode(claim, 0); !errors.Is(err, fsm.ErrCorrupt) {
			t.Errorf("%x: %v", claim, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	world := fsmtest.Seeded(1)
	for range 20 {
		data, err := entry.Encode(world.Entry())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d entry.Decoder
		e, err := d.Decode(data, 0)
		if e.GetTerm() != 0 {
			// Its stamp was left out.
			e.Term = 0
		}
		if err != nil {
			if !errors.Is(err, fsm.ErrCorrupt) && !errors.Is(err, fsm.ErrNewerVersion) {
				t.Fatalf("%x: %v", data, err)
			}
			return
		}
		again, err := entry.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := d.Decode(again, 0); err != nil || !proto.Equal(back, e) {
			t.Fatalf("%v became %v, %v", e, back, err)
		}
	})
}
