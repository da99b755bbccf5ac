package real_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/real"
	"github.com/quorlease/quorlease/bench/hosts"
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

// open is a stage that ends with the test. Where that failed the logs are shown.
func open(t *testing.T, pace int, apart bool, setting gateways.Setting) *real.Stage {
	t.Helper()
	s, err := real.Open(t.Context(), real.Config{Binary: binary, Dir: t.TempDir(), Pace: pace, Apart: apart}, setting)
	if errors.Is(err, hosts.ErrUnavailable) {
		t.Skipf("SKIPPED a node is not cut off: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	logs := s.Logs()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, name := range logs {
			if text, _ := os.ReadFile(name); t.Failed() {
				t.Logf("%s ends with:\n%s", name, text[max(0, len(text)-logMax):])
			}
		}
	})
	return s
}
