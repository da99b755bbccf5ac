package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func threeVoters() raft.Configuration {
	var c raft.Configuration
	for _, name := range []string{"n1", "n2", "n3"} {
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(name + ".0123abcd"), Address: raft.ServerAddress(name + ":7201"),
		})
	}
	return c
}

// sealed is a filled directory with snapshots of three voters, of the entries
// given, the newest last.
func sealed(t *testing.T, indexes ...uint64) (dir string, ids []string) {
	t.Helper()
	dir = filled(t)
	s, _, _ := openWatched(t, dir)
	_, trans := raft.NewInmemTransport("")
	defer trans.Close()
	for _, index := range indexes {
		sink, err := s.Snapshots.Create(1, index, 5, threeVoters(), 1, trans)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(sink, "%05000d", index); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sink.Close(), sink.Close(), sink.Cancel(), s.Snapshots.Verify(sink.ID())); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, sink.ID())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, ids
}

// contents is every file below dir.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		fmt.Fprintln(&all, path)
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%q\n", b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// meaning is what Raft would take from a snapshot's notes.
func meaning(t *testing.T, dir, id string) string {
	t.Helper()
	s, err := OpenStores(dir, true, hclog.NewNullLogger())
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	meta, source, err := s.Snapshots.Open(id)
	if err != nil {
		return err.Error()
	}
	defer source.Close()
	meta.Peers = nil
	state, err := io.ReadAll(source)
	return fmt.Sprint(*meta, len(state), err)
}

func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestR17EveryBitOfASnapshotsNotes: whichever bit flips, a start refuses and
// changes nothing, or it means what it meant.
func TestR17EveryBitOfASnapshotsNotes(t *testing.T) {
	t.Parallel()
	dir, ids := sealed(t, 150)
	path := filepath.Join(dir, snapshotsDir, ids[0], metaFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, kept := meaning(t, dir, ids[0]), 0
	stored, err := survey(filepath.Join(dir, snapshotsDir))
	if err != nil || len(stored) != 1 || stored[0].untrusted != nil {
		t.Fatalf("undamaged: got %+v, %v", stored, err)
	}
	for bit := range 8 * len(good) {
		rewrite(t, path, func([]byte) []byte {
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			return bad
		})
		if readable(filepath.Dir(path)) != nil {
			continue
		}
		kept++
		if got := meaning(t, dir, ids[0]); got != want {
			t.Errorf("bit %d of byte %d: got %s, want %s", bit%8, bit/8, got, want)
		}
	}
	// The case of a letter in a name, and what is read by nobody.
	if kept > 8*len(good)/4 {
		t.Errorf("%d of %d flips passed", kept, 8*len(good))
	}
}

func TestSealedSnapshots(t *testing.T) {
	t.Parallel()
	notes := func(dir, id string) string { return filepath.Join(dir, snapshotsDir, id, metaFile) }
	otherID := func(b []byte) []byte { return bytes.Replace(b, []byte("n1.0123abcd"), []byte("n1.0123abce"), 1) }
	noID := func(b []byte) []byte { return bytes.Replace(b, []byte(`"ID"`), []byte(`"IE"`), 1) }
	for name, change := range map[string]func([]byte) []byte{
		"R17_another_node": otherID,
		"R17_another_address": func(b []byte) []byte {
			return bytes.Replace(b, []byte("n2:7201"), []byte("n2:7200"), 1)
		},
		"R17_no_name":    noID,
		"R17_unreadable": func(b []byte) []byte { return b[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, ids := sealed(t, 150)
			rewrite(t, notes(dir, ids[0]), change)
			before := contents(t, dir)
			_, err := OpenStores(dir, true, hclog.NewNullLogger())
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), metaFile) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line: corrupt, %s", err, metaFile)
			}
			if after := contents(t, dir); after != before {
				t.Error("refused, but something was changed")
			}
		})
	}
	t.Run("R17_without_its_checksum", func(t *testing.T) {
		t.Parallel()
		dir, ids := sealed(t, 150)
		if err := os.Remove(filepath.Join(dir, snapshotsDir, ids[0], sealFile)); err != nil {
			t.Fatal(err)
		}
		if err := verify(t, dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), sealFile) {
			t.Errorf("got %v, want corrupt: %s", err, sealFile)
		}
	})
	t.Run("R23_the_older_one_and_the_log_make_up_for_it", func(t *testing.T) {
		t.Parallel()
		dir, ids := sealed(t, 100, 200)
		rewrite(t, notes(dir, ids[1]), noID)
		if err := verify(t, dir); err != nil {
			t.Fatal(err)
		}
		s, _, _ := openWatched(t, dir)
		defer s.Close()
		metas, err := s.Snapshots.List()
		if err != nil || len(metas) != 1 || metas[0].ID != ids[0] || len(metas[0].Configuration.Servers) != 3 {
			t.Errorf("got %+v, %v, want the older one", metas, err)
		}
	})
	t.Run("R23_the_log_ends_before_it", func(t *testing.T) {
		t.Parallel()
		dir, ids := sealed(t, 100, 300)
		if err := verify(t, dir); err != nil {
			t.Fatalf("undamaged: %v", err)
		}
		rewrite(t, notes(dir, ids[1]), otherID)
		if err := verify(t, dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "ends at entry 200") {
			t.Errorf("got %v, want that the log does not reach it", err)
		}
	})
	t.Run("R17_while_the_node_runs", func(t *testing.T) {
		t.Parallel()
		dir, ids := sealed(t, 100)
		s, _, _ := openWatched(t, dir)
		defer s.Close()
		rewrite(t, notes(dir, ids[0]), otherID)
		metas, err := s.Snapshots.List()
		if err != nil || len(metas) != 0 {
			t.Errorf("got %+v, %v, want none to send", metas, err)
		}
		if _, _, err := s.Snapshots.Open(ids[0]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("open: got %v, want corrupt", err)
		}
		if _, err := s.Snapshots.Create(1, 200, 5, raft.Configuration{}, 1, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("create beside it: got %v, want corrupt", err)
		}
	})
}

// TestR37NoLogWhereThereWasState: the log of a node that belongs to a cluster is
// gone, and there is no snapshot that would tell.
func TestR37NoLogWhereThereWasState(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
	} {
		dir := filled(t)
		err := errors.Join(lose(filepath.Join(dir, logFile)), os.Remove(filepath.Join(dir, snapshotsDir)))
		if err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		_, err = OpenStores(dir, true, hclog.NewNullLogger())
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), logFile+" is gone") {
			t.Errorf("%s: got %v, want corrupt: the log is gone", name, err)
		}
		if after := contents(t, dir); after != before {
			t.Errorf("%s: refused, but something was changed", name)
		}
	}
}
