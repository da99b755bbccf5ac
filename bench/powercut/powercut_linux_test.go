package powercut_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorlease/quorlease/bench/powercut"
)

// TestCut: what was synced is there after a cut, and what was not is not.
func TestCut(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a disk needs root")
	}
	disk, err := powercut.New(t.Context(), t.TempDir(), 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(disk.Dir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, sync bool) {
		t.Helper()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if !sync {
			return
		}
		if err := file.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	write("synced", true)
	write(", and not", false)
	if err := disk.Cut(); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err == nil {
		t.Error("a sync without power: no error")
	}
	_ = file.Close()
	if err := disk.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := []byte("synced"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
