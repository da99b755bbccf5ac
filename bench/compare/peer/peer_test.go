package peer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

func TestFind(t *testing.T) {
	dir, path, bin := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	t.Setenv("GOBIN", bin)
	t.Setenv("GOPATH", "")
	t.Setenv("HOME", t.TempDir())
	p := Program{Name: "server", Files: []string{"server", "other"}}
	if got := Find(dir, p); got != "" {
		t.Errorf("found %s where there is none", got)
	}
	write := func(dir, name string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho server v1.2.3-rc1 build 9.9\n"), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write(dir, "server", 0o600)
	for _, at := range [][2]string{{bin, "other"}, {bin, "server"}, {path, "server"}} {
		want := write(at[0], at[1], 0o700)
		if got := Find(dir, p); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "server"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "server")
	if got := Find(dir, p); got != want {
		t.Errorf("found %q, want %q, what it cannot run not before", got, want)
	}
	if got := Version(t.Context(), want); got != "1.2.3-rc1" {
		t.Errorf("version %q", got)
	}
	if got := Version(t.Context(), filepath.Join(dir, "none")); got != "" {
		t.Errorf("version of nothing %q", got)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	errNot := errors.New("not yet")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tries := 0
		if err := Ready(t.Context(), "it", func(context.Context) error {
			if tries++; tries < 5 {
				return errNot
			}
			return nil
		}); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		err := Ready(t.Context(), "it", func(context.Context) error { return errNot })
		if !errors.Is(err, errNot) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*readyWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
	ended, err := bench.StartProcess(bench.Program{Path: "/bin/sh", Args: []string{"-c", "exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Ready(t.Context(), "it", func(context.Context) error { return errNot }, ended); !errors.Is(err, errEnded) {
		t.Errorf("a process that ended: %v", err)
	}
	Kill(ended, nil)
}

// TestChildren: what a child did that has ended counts, such as one that writes a file
// anew.
func TestChildren(t *testing.T) {
	t.Parallel()
	p, err := bench.StartProcess(bench.Program{Path: "/bin/sh", Args: []string{
		"-c", `sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; sleep 100`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer Kill(p)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		used, err := CPU(p)
		if err != nil {
			t.Fatal(err)
		}
		if used >= 30*time.Millisecond {
			return
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("%v after its child's work: %v", used, err)
		}
	}
}

// TestKilled: a process and its children are gone when Kill returns.
func TestKilled(t *testing.T) {
	t.Parallel()
	p, err := bench.StartProcess(bench.Program{
		Path: "/bin/sh", Args: []string{"-c", "sleep 100 & wait"}, Env: []string{"A=b"}, Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if used, err := CPU(p); err != nil || used > time.Second {
		t.Errorf("processor time %v, %v", used, err)
	}
	Kill(p)
	Kill(p)
	select {
	case <-p.Ended():
	default:
		t.Error("it goes on")
	}
	if _, err := CPU(p); err == nil {
		t.Error("processor time of one that is gone: no error")
	}
	if _, err := bench.StartProcess(bench.Program{Path: "/nonexistent"}); err == nil {
		t.Error("no program: no error")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	b := Bucket{Name: "load", Keys: 2}
	if got := b.AllKeys(); len(got) != 2 || got[0] != "load-0" || got[1] != b.Key(1) {
		t.Errorf("%q", got)
	}
}
