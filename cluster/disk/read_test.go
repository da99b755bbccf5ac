package disk

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// told is what Read tells of dir.
func told(dir string) (state string, first, last uint64, err error) {
	err = Read(dir, Visitor{
		Snapshot: func(source io.Reader) error {
			data, err := io.ReadAll(source)
			state = string(data)
			return err
		},
		Entry: func(index uint64, data []byte) error {
			if want := fmt.Sprintf("%0400d", index); string(data) != want {
				return fmt.Errorf("data %.20q…", data)
			}
			if first == 0 {
				first = index
			}
			if last != 0 && index != last+1 {
				return fmt.Errorf("after entry %d", last)
			}
			last = index
			return nil
		},
	})
	return state, first, last, err
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	state, first, last, err := told(dir)
	if err != nil || state != "" || first != 1 || last != entries {
		t.Fatalf("snapshot %q, entries %d to %d, %v; want no snapshot and 1 to %d", state, first, last, err, entries)
	}
	s, logs, _ := openWatched(t, dir)
	if _, _, _, err := told(dir); err == nil || !strings.Contains(err.Error(), "another process owns") {
		t.Errorf("a log that is in use: %v", err)
	}
	for _, index := range []uint64{50, 120} {
		snapshot(t, s, index)
	}
	if err := logs.DeleteRange(1, 30); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if state, first, last, err := told(dir); err != nil || state != "state 50" || first != 51 || last != entries {
		t.Errorf("%q, entries %d to %d, %v; want the older snapshot and what follows", state, first, last, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, snapshotsDir)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := told(dir); err == nil {
		t.Error("a log without its beginning, and no snapshot: no error")
	}
	if _, first, _, err := told(t.TempDir()); err != nil || first != 0 {
		t.Errorf("an empty directory: entry %d, %v", first, err)
	}
}

// snapshot writes one that ends at index.
func snapshot(t *testing.T, s *Stores, index uint64) {
	t.Helper()
	configuration := raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1:7201"}}}
	sink, err := s.Snapshots.Create(1, index, 1+index/50, configuration, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(sink, "state %d", index); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}
