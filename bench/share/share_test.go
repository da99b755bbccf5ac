package share

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestQuota(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		share     int64
		quota, of time.Duration
	}{
		{1000, 2 * time.Millisecond, period},
		{500, time.Millisecond, period},
		{100, time.Millisecond, longPeriod},
		{15_000, 30 * time.Millisecond, period},
		{0, leastQuota, longPeriod},
	} {
		if quota, of := quotaOf(row.share); quota != row.quota || of != row.of {
			t.Errorf("%d: %v of %v, want %v of %v", row.share, quota, of, row.quota, row.of)
		}
	}
}

// TestFiles: what is written where, by the version of the groups.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		second bool
		share  int64
		want   map[string]string
	}{
		{true, 1000, map[string]string{"cpu.max": "2000 20000"}},
		{true, 0, map[string]string{"cpu.max": "max 100000"}},
		{false, 1000, map[string]string{"cpu.cfs_quota_us": "2000", "cpu.cfs_period_us": "20000"}},
		{false, 0, map[string]string{"cpu.cfs_quota_us": "-1"}},
	} {
		one := &Group{dir: t.TempDir(), second: row.second}
		if err := one.Bound(row.share); err == nil || !strings.Contains(err.Error(), "bound processor time: ") {
			t.Errorf("without the kernel's files: %v", err)
		}
		for file := range row.want {
			if err := os.WriteFile(filepath.Join(one.dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := one.Bound(row.share); err != nil {
			t.Error(err)
		}
		for file, want := range row.want {
			got, err := os.ReadFile(filepath.Join(one.dir, file))
			if err != nil || string(got) != want {
				t.Errorf("share %d, %s: %q, %v, want %q", row.share, file, got, err, want)
			}
		}
	}
}

// TestNoGroups: a machine without groups is told apart from one where they fail.
func TestNoGroups(t *testing.T) {
	t.Parallel()
	_, err := Open(t.TempDir())
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), procs) {
		t.Errorf("got %v", err)
	}
}

// TestGroup puts a process that would use a whole processor under a tenth of one, where
// this machine lets it, and leaves no group behind.
func TestGroup(t *testing.T) {
	groups, err := Open(Mount)
	if errors.Is(err, ErrUnavailable) {
		t.Logf("not here: %v", err)
		return
	}
	one, err := groups.Add()
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Bound(1000); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	wrap := one.Wrap()
	cmd := exec.CommandContext(ctx, wrap[0], append(wrap[1:], "sh", "-c", "while :; do :; done")...)
	began := time.Now()
	_ = cmd.Run()
	used, took := cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), time.Since(began)
	if used > took*3/10 {
		t.Errorf("%v of processor time in %v, want a tenth", used, took)
	}
	if err := groups.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(one.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group is still there: %v", err)
	}
}
