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

// told is what Read tells of a directory.
type told struct {
	state       string
	first, last uint64
}

func tell(dir string) (got told, err error) {
	err = Read(dir, Visitor{
		Snapshot: func(source io.Reader) error {
			data, err := io.ReadAll(source)
			got.state = string(data)
			return err
		},
		Entry: func(index, _ uint64, data []byte) error {
			if want := fmt.Sprintf("%0400d", index); string(data) != want {
				return fmt.Errorf("data %.20q…", data)
			}
			if got.first == 0 {
				got.first = index
			}
			if got.last != 0 && index != got.last+1 {
				return fmt.Errorf("after entry %d", got.last)
			}
			got.last = index
			return nil
		},
	})
	return got, err
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	if got, err := tell(dir); err != nil || got != (told{"", 1, entries}) {
		t.Fatalf("%+v, %v; want no snapshot and entries 1 to %d", got, err, entries)
	}
	s, logs, _ := openWatched(t, dir)
	if _, err := tell(dir); err == nil || !strings.Contains(err.Error(), "another process owns") {
		t.Errorf("a log that is in use: %v", err)
	}
	for _, index := range []uint64{50, 120} {
		snapshot(t, s, index)
	}
	if err := logs.DeleteRange(1, 30); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got, err := tell(dir); err != nil || got != (told{"state 50", 51, entries}) {
		t.Errorf("%+v, %v; want the older snapshot and what follows", got, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, snapshotsDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := tell(dir); err == nil {
		t.Error("a log without its beginning, and no snapshot: no error")
	}
	if got, err := tell(t.TempDir()); err != nil || got != (told{}) {
		t.Errorf("an empty directory: %+v, %v", got, err)
	}
}

// snapshot writes one that ends at index.
func snapshot(t *testing.T, s *Stores, index uint64) {
	t.Helper()
	_, transport := raft.NewInmemTransport("n1:7201")
	configuration := raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1:7201"}}}
	sink, err := s.Snapshots.Create(1, index, 1+index/50, configuration, 1, transport)
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
