package powercut_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/powercut"
)

// TestCut: what was synced is there after a cut, and what was not is not.
func TestCut(t *testing.T) {
	t.Parallel()
	disk := newDisk(t)
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

// TestHeldElsewhere: a mount namespace that was made meanwhile would keep the disk
// without power, whatever is mounted again here.
func TestHeldElsewhere(t *testing.T) {
	t.Parallel()
	disk := newDisk(t)
	// The one that holds it says so, and lets go when its input ends.
	other := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", "echo here; read end")
	end, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := disk.Cut(); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := disk.Restore(soon); err == nil || !strings.Contains(err.Error(), "another mount namespace still has it") {
		t.Errorf("restore what another namespace has: %v", err)
	}
	_ = end.Close()
	_ = other.Wait()
	if err := disk.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(disk.Dir(), "log"), nil, 0o600); err != nil {
		t.Error(err)
	}
}

func newDisk(t *testing.T) *powercut.Disk {
	t.Helper()
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
	return disk
}
