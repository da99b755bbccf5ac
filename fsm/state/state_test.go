package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	"github.com/quorlease/quorlease/fsm/state"
	"github.com/quorlease/quorlease/fsm/tally"
)

// lived is a machine with something of everything, and its snapshot.
func lived(t testing.TB, entries int) (*fsm.Machine, []byte) {
	t.Helper()
	m := fsm.New()
	world := fsmtest.Seeded(11)
	for range entries {
		m.Apply(m.Index()+1, world.Entry())
	}
	return m, fsmtest.Saved(t, m)
}

// TestSnapshotBesideApply writes snapshots while entries are applied: each is the
// state of the moment at which it was taken.
func TestSnapshotBesideApply(t *testing.T) {
	t.Parallel()
	m := fsm.New()
	world := fsmtest.Seeded(5)
	type written struct {
		hash uint64
		file bytes.Buffer
		err  error
		done chan struct{}
	}
	var snapshots []*written
	for i := range 600 {
		m.Apply(m.Index()+1, world.Entry())
		if i%20 != 0 {
			continue
		}
		w := &written{hash: m.Hash(), done: make(chan struct{})}
		snapshot := m.Snapshot()
		go func() {
			defer close(w.done)
			defer snapshot.Release()
			_, w.err = snapshot.WriteTo(&w.file)
		}()
		snapshots = append(snapshots, w)
	}
	for i, w := range snapshots {
		<-w.done
		if w.err != nil {
			t.Fatal(w.err)
		}
		restored, err := fsm.Restore(&w.file)
		if err != nil {
			t.Fatalf("snapshot %d: %v", i, err)
		}
		if restored.Hash() != w.hash {
			t.Errorf("snapshot %d: hash %016x, want %016x", i, restored.Hash(), w.hash)
		}
	}
}

// TestDamagedSnapshotsAreCorrupt flips bits, cuts off, and adds.
func TestDamagedSnapshotsAreCorrupt(t *testing.T) {
	t.Parallel()
	_, good := lived(t, 40)
	if _, err := state.Restore(bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	check := func(name string, data []byte) {
		t.Helper()
		_, err := state.Restore(bytes.NewReader(data))
		if !errors.Is(err, frames.ErrCorrupt) && !errors.Is(err, frames.ErrNewerVersion) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for at := 0; at < len(good); at++ {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		check(fmt.Sprint("byte ", at), bad)
	}
	for n := 0; n < len(good); n += 7 {
		check(fmt.Sprint("the first ", n), good[:n])
	}
	check("one more", append(bytes.Clone(good), 0))
	newer := bytes.Clone(good)
	newer[8]++
	if _, err := state.Restore(bytes.NewReader(newer)); !errors.Is(err, frames.ErrNewerVersion) {
		t.Errorf("version %d: %v, want %v", newer[8], err, frames.ErrNewerVersion)
	}
}

// TestDiskErrorsAreThemselves: an error of the disk is not a corrupt file.
func TestDiskErrorsAreThemselves(t *testing.T) {
	t.Parallel()
	m, good := lived(t, 40)
	broken := errors.New("the disk is gone")
	reader := io.MultiReader(bytes.NewReader(good[:len(good)/2]), iotest.ErrReader(broken))
	if _, err := state.Restore(reader); !errors.Is(err, broken) || errors.Is(err, frames.ErrCorrupt) {
		t.Errorf("read: %v, want %v", err, broken)
	}
	for n := range 3 {
		if _, err := m.Snapshot().WriteTo(&full{room: n * len(good) / 3, err: broken}); !errors.Is(err, broken) {
			t.Errorf("write with room for %d: %v, want %v", n*len(good)/3, err, broken)
		}
	}
}

// full is a disk with so much room.
type full struct {
	room int
	err  error
}

func (f *full) Write(p []byte) (int, error) {
	if f.room < len(p) {
		return 0, f.err
	}
	f.room -= len(p)
	return len(p), nil
}

// TestLengthsAreClaims: a record that says it has 16 MiB takes no more memory
// than what is there.
func TestLengthsAreClaims(t *testing.T) {
	// Not parallel: it looks at all of the program's memory.
	_, good := lived(t, 1)
	claim := append(bytes.Clone(good[:9]), 0x80, 0x80, 0x80, 0x08)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := state.Restore(bytes.NewReader(append(claim, 1, 2, 3)))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, frames.ErrCorrupt) {
		t.Errorf("%v, want %v", err, frames.ErrCorrupt)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated for a file of %d", took, len(claim)+3)
	}
	for _, size := range [][]byte{{0x81, 0x80, 0x80, 0x08}, {0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		if _, err := state.Restore(bytes.NewReader(append(good[:9:9], size...))); !errors.Is(err, frames.ErrCorrupt) {
			t.Errorf("length %x: %v, want %v", size, err, frames.ErrCorrupt)
		}
	}
}

// TestHistoryIsBoundedByBytes: a change larger than the bound by itself is kept
// by its names, and older ones go.
func TestHistoryIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	s := state.New()
	large := make([]*logv1.LimitChange, 0, 6000)
	for i := range cap(large) {
		limit := fsmtest.Limit(fmt.Sprint("limit", i), fsmtest.Dimension(t, "requests", "1/1s", 10))
		for d := range 30 {
			limit.Dimensions = append(limit.Dimensions, fsmtest.Dimension(t, fmt.Sprint("dimension", d), "1/1s", 10))
		}
		large = append(large, &logv1.LimitChange{Name: limit.GetName(), LimitAfter: limit})
	}
	half := large[:2000]
	for revision, changes := range [][]*logv1.LimitChange{half, half, half, large} {
		s.Remember(&state.Revision{Revision: uint64(revision + 1), Changes: changes})
	}
	history := s.History(0)
	if len(history) == 0 || history[0].Revision != 4 {
		t.Fatalf("%d revisions, want the last one first", len(history))
	}
	if c := history[0].Changes; len(c) != len(large) || c[0].GetLimitAfter() != nil {
		t.Errorf("of the large change %d are kept, with the limits", len(c))
	}
	if len(history) > 3 {
		t.Errorf("%d revisions are kept", len(history))
	}
	if s.Hash() != s.Recount() {
		t.Errorf("hash %016x, recount %016x", s.Hash(), s.Recount())
	}
}

// TestClientsThatSleep: a client is forgotten when its last count has left the
// window of its retry budget and its last throttled answer the hour.
func TestClientsThatSleep(t *testing.T) {
	t.Parallel()
	s := state.New()
	second := func(n int64) { s.Now = bucket.Instant(n * int64(time.Second)) }
	second(1000)
	s.Count(tally.Process{Node: "n", Boot: 1}, "c", tally.Report{
		Slice: 1000, Count: tally.Count{Total: 3, Retries: 1, Throttled: 2},
	})
	s.Seal()
	second(1299)
	s.ForgetSilent(10)
	if total, retries := s.FindClient("c").Tally.Admitted(s.Now); total != 3 || retries != 1 {
		t.Errorf("%d, %d, want 3, 1", total, retries)
	}
	second(1300)
	s.ForgetSilent(10)
	s.Seal()
	if c := s.FindClient("c"); c == nil || c.Tally.Recent(s.Now) != (tally.Count{Throttled: 2}) {
		t.Errorf("%+v, want the throttled answers of the last hour", c)
	}
	if s.Hash() != s.Recount() {
		t.Errorf("hash %016x, recount %016x", s.Hash(), s.Recount())
	}
	// The minute of second 1000 is the sixteenth.
	second(16*60 + 3599)
	s.ForgetSilent(10)
	if s.FindClient("c") == nil {
		t.Error("forgotten within the hour")
	}
	second(16*60 + 3600)
	s.ForgetSilent(10)
	if s.FindClient("c") != nil || s.Clients() != 0 {
		t.Errorf("%d clients, want none", s.Clients())
	}
}
