package clustertest

import (
	"os"
	"testing"

	"github.com/quorlease/quorlease/cluster/disk"
)

const (
	// memory is where Linux keeps files in memory.
	memory = "/dev/shm"
	// room is what must be free there, in bytes, and a quarter of it at least: a
	// nearly full one would end tests that have nothing to do with it, and a
	// container's may be small.
	room = 1 << 30
)

// place is a directory for the data of all nodes, removed at the end. A bubble's
// clock stands still during a system call, so how long a disk takes to sync is no
// part of what a test in one shows, and only holds it up: its files are in memory
// where there is room. Other tests have a disk's.
func place(tb testing.TB, bubble bool) string {
	tb.Helper()
	there, err := disk.Statfs(memory)
	if !bubble || err != nil || there.Free < max(room, there.Total/4) {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "quorlease-test-") //nolint:usetesting // TempDir is on a disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("removing the nodes' data: %v", err)
		}
	})
	return dir
}
