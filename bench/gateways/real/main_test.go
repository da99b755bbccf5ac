package real_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/real"
)

// binary is what all processes here are.
var binary string

func TestMain(m *testing.M) {
	// The goroutine that starts processes stays as long as this one.
	goleak.VerifyTestMain(built{m}, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// built runs tests that have a binary.
type built struct{ tests *testing.M }

// Run is the exit code.
func (b built) Run() int {
	dir, err := os.MkdirTemp("", "quorlease-real-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeoutCause(context.Background(), 3*time.Minute, errors.New("it took 3 minutes"))
	defer cancel()
	if binary, err = bench.BuildBinary(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return b.tests.Run()
}

// logMax is how much is shown of a process's log.
const logMax = 8 << 10

// folder is where processes work. Where the test failed their logs are shown.
func folder(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		below, _ := filepath.Glob(filepath.Join(dir, "stage-*", "*.log"))
		for _, name := range append(logs, below...) {
			text, _ := os.ReadFile(name)
			t.Logf("%s ends with:\n%s", filepath.Base(name), text[max(0, len(text)-logMax):])
		}
		if err != nil {
			t.Log(err)
		}
	})
	return dir
}

// open is a stage that ends with the test.
func open(t *testing.T, pace int, setting gateways.Setting) *real.Stage {
	t.Helper()
	s, err := real.Open(t.Context(), real.Config{Binary: binary, Dir: folder(t), Pace: pace}, setting)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
