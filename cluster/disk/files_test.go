package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const entries = 200

// filled is a data directory with a log of 200 entries, a term and a vote.
func filled(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	s, logs, stable := openWatched(t, dir)
	for i := uint64(1); i <= entries; i += 10 {
		var batch []*raft.Log
		for j := i; j < i+10; j++ {
			batch = append(batch, entryAt(j))
		}
		if err := logs.StoreLogs(batch); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		stable.SetUint64([]byte("CurrentTerm"), 7), stable.Set([]byte("LastVoteCand"), []byte("n1:7201")), s.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func entryAt(index uint64) *raft.Log {
	data := fmt.Appendf(nil, "%0400d", index)
	return &raft.Log{Index: index, Term: 1 + index/50, Type: raft.LogCommand, Data: data}
}

func openWatched(t testing.TB, dir string) (*Stores, raft.LogStore, raft.StableStore) {
	t.Helper()
	s, err := OpenStores(dir, false, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	w := Watch(Config{OnStall: func(*StallError) {}, OnError: func(err error) { t.Error(err) }})
	t.Cleanup(w.Close)
	return s, w.LogStore(s.Log), w.StableStore(s.Log)
}

// verify opens dir and returns nil where everything is what filled wrote.
func verify(t *testing.T, dir string) error {
	t.Helper()
	s, err := OpenStores(dir, false, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	defer s.Close()
	w := Watch(Config{OnStall: func(*StallError) {}, OnError: func(error) {}})
	defer w.Close()
	logs, stable := w.LogStore(s.Log), w.StableStore(s.Log)
	for i := uint64(1); i <= entries; i++ {
		var got raft.Log
		if err := logs.GetLog(i, &got); err != nil {
			return fmt.Errorf("not noticed at the start: %w", err)
		}
		want := entryAt(i)
		if got.Index != i || got.Term != want.Term || string(got.Data) != string(want.Data) || len(got.Extensions) != 0 {
			return fmt.Errorf("entry %d: got %+v", i, got)
		}
	}
	term, err := stable.GetUint64([]byte("CurrentTerm"))
	vote, voteErr := stable.Get([]byte("LastVoteCand"))
	if err != nil || voteErr != nil || term != 7 || string(vote) != "n1:7201" {
		return fmt.Errorf("term %d (%w), vote %q (%w)", term, err, vote, voteErr)
	}
	return nil
}

// damaged opens a copy of the log with other content: it is refused as corrupt,
// and left as it is, or nothing of what counts was hit.
func damaged(t *testing.T, what string, content []byte) (refused bool) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, logFile)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	err := verify(t, dir)
	if err == nil {
		return false
	}
	if !errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), "not noticed") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%s: got %v, want one line: corrupt", what, err)
	}
	if after, readErr := os.ReadFile(path); readErr != nil || !slices.Equal(after, content) {
		t.Fatalf("%s: refused (%v), but the file was changed (%v)", what, err, readErr)
	}
	return true
}

func TestDamagedLog(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(filled(t), logFile))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	// Most of the file is pages that no longer count; 0 to 3 and those with the
	// entries do.
	random := rand.New(rand.NewPCG(1, 2))
	damage := map[string]func() []byte{
		"R17_flipped_bits": func() []byte {
			bad := slices.Clone(good)
			for range 1 + random.IntN(8) {
				bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
			}
			return bad
		},
		"R17_flipped_bits_in_the_first_pages": func() []byte {
			bad := slices.Clone(good)
			bad[random.IntN(4*page)] ^= 1 << random.IntN(8)
			return bad
		},
		"R17_cut_short": func() []byte { return good[:random.IntN(len(good))] },
		"R17_a_page_never_written": func() []byte {
			bad := slices.Clone(good)
			at := random.IntN(len(bad)/page) * page
			clear(bad[at : at+page])
			return bad
		},
		"R17_a_page_in_anothers_place": func() []byte {
			bad := slices.Clone(good)
			from, to := random.IntN(len(bad)/page)*page, random.IntN(len(bad)/page)*page
			copy(bad[to:to+page], good[from:from+page])
			return bad
		},
	}
	for name, change := range damage {
		t.Run(name, func(t *testing.T) {
			refused := 0
			for i := range 25 {
				if damaged(t, fmt.Sprint(name, " ", i), change()) {
					refused++
				}
			}
			if refused == 0 {
				t.Error("none of 25 was refused")
			}
		})
	}
}

func TestOpenStores(t *testing.T) {
	t.Parallel()
	t.Run("undamaged", func(t *testing.T) {
		t.Parallel()
		if err := verify(t, filled(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("R16_in_use", func(t *testing.T) {
		t.Parallel()
		dir := filled(t)
		s, _, _ := openWatched(t, dir)
		defer s.Close()
		start := time.Now()
		_, err := OpenStores(dir, false, hclog.NewNullLogger())
		if err == nil || !strings.Contains(err.Error(), "another process owns") || time.Since(start) > 5*time.Second {
			t.Errorf("got %v after %s, want a clear error after a second", err, time.Since(start))
		}
	})
	t.Run("R17_a_gap", func(t *testing.T) {
		t.Parallel()
		dir := filled(t)
		s, logs, _ := openWatched(t, dir)
		if err := errors.Join(logs.DeleteRange(50, 60), s.Close()); err != nil {
			t.Fatal(err)
		}
		if err := verify(t, dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "entry 61 follows entry 49") {
			t.Errorf("got %v, want the gap", err)
		}
	})
	t.Run("R17_a_beginning_without_a_snapshot", func(t *testing.T) {
		t.Parallel()
		dir := filled(t)
		s, logs, _ := openWatched(t, dir)
		if err := errors.Join(logs.DeleteRange(1, 9), s.Close()); err != nil {
			t.Fatal(err)
		}
		if err := verify(t, dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "begins at entry 10") {
			t.Errorf("got %v, want the missing beginning", err)
		}
	})
	t.Run("R17_a_term_that_went_back", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s, logs, _ := openWatched(t, dir)
		later, earlier := &raft.Log{Index: 1, Term: 2}, &raft.Log{Index: 2, Term: 1}
		err := errors.Join(logs.StoreLog(later), logs.StoreLog(earlier), s.Close())
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "after one of term 2") {
			t.Errorf("got %v, want the term", err)
		}
	})
}

// withSnapshots is a filled directory with snapshots of entries 100 and 200.
func withSnapshots(t *testing.T) (dir string, ids []string) {
	t.Helper()
	dir = filled(t)
	s, _, _ := openWatched(t, dir)
	for _, index := range []uint64{100, 200} {
		sink, err := s.Snapshots.Create(1, index, 5, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(sink, "%05000d", index); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Snapshots.Tighten(sink.ID()), sink.Close()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, sink.ID())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, ids
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	// spoil flips a bit in a snapshot.
	spoil := func(t *testing.T, dir, id string) {
		t.Helper()
		path := filepath.Join(dir, snapshotsDir, id, "state.bin")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[100] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("R23_private_and_without_leftovers", func(t *testing.T) {
		t.Parallel()
		dir, ids := withSnapshots(t)
		left := filepath.Join(dir, snapshotsDir, "1-1-1.tmp")
		if err := os.Mkdir(left, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := verify(t, dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what a crash left is still there: %v", err)
		}
		for path, want := range map[string]os.FileMode{
			snapshotsDir: 0o700, filepath.Join(snapshotsDir, ids[0]): 0o700,
			filepath.Join(snapshotsDir, ids[0], "state.bin"): 0o600,
		} {
			if st, err := os.Stat(filepath.Join(dir, path)); err != nil || st.Mode().Perm() != want {
				t.Errorf("%s: got %v, %v, want mode %04o", path, st.Mode(), err, want)
			}
		}
	})
	t.Run("R23_an_unreadable_newest_is_made_up_for_by_the_log", func(t *testing.T) {
		t.Parallel()
		dir, ids := withSnapshots(t)
		spoil(t, dir, ids[1])
		if err := verify(t, dir); err != nil {
			t.Errorf("got %v, want the older snapshot and the log to do", err)
		}
	})
	t.Run("R23_a_gap_behind_the_older_one", func(t *testing.T) {
		t.Parallel()
		dir, ids := withSnapshots(t)
		s, logs, _ := openWatched(t, dir)
		if err := errors.Join(logs.DeleteRange(1, 150), s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenStores(dir, false, hclog.NewNullLogger()); err != nil {
			t.Fatalf("with the newest readable: %v", err)
		}
		spoil(t, dir, ids[1])
		// The log above is still open: look at what the snapshots say alone.
		path := filepath.Join(dir, snapshotsDir)
		stored, err := survey(path)
		if err != nil {
			t.Fatal(err)
		}
		err = checkReach(path, stored, extent{first: 151, last: 200, term: true}, true)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "entry 151") {
			t.Errorf("got %v, want the gap", err)
		}
	})
	t.Run("R23_none_readable", func(t *testing.T) {
		t.Parallel()
		dir, ids := withSnapshots(t)
		spoil(t, dir, ids[0])
		spoil(t, dir, ids[1])
		if err := verify(t, dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "no snapshot") {
			t.Errorf("got %v, want corrupt: no snapshot", err)
		}
	})
}

// TestR37SnapshotsWithoutTheirLog: a node that forgot its votes must not vote.
func TestR37SnapshotsWithoutTheirLog(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"replaced": func(path string) error {
			other := t.TempDir()
			fresh, _, _ := openWatched(t, other)
			return errors.Join(fresh.Close(), os.Rename(filepath.Join(other, logFile), path))
		},
	} {
		dir, _ := withSnapshots(t)
		if err := lose(filepath.Join(dir, logFile)); err != nil {
			t.Fatal(err)
		}
		if err := verify(t, dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), logFile+" is gone") {
			t.Errorf("%s: got %v, want corrupt: the log is gone", name, err)
		}
	}
}

// TestR17GapBehindASnapshot: a leader sent a snapshot to a follower that was
// away, and entries behind it; Raft keeps some of those from before.
func TestR17GapBehindASnapshot(t *testing.T) {
	t.Parallel()
	dir, _ := withSnapshots(t)
	s, logs, _ := openWatched(t, dir)
	if err := errors.Join(logs.DeleteRange(50, 150), s.Close()); err != nil {
		t.Fatal(err)
	}
	s, logs, _ = openWatched(t, dir)
	var got raft.Log
	err := errors.Join(logs.GetLog(151, &got), logs.DeleteRange(151, 200), logs.StoreLog(entryAt(202)), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenStores(dir, false, hclog.NewNullLogger())
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "entry 202 follows entry 49") {
		t.Errorf("got %v, want the gap that no snapshot covers", err)
	}
}
