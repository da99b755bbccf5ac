package disturb

import (
	"bytes"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// TestDisturbed goes through everything that can be done to three real nodes, in a few
// seconds: too short for figures, long enough for every guarantee to be looked at.
func TestDisturbed(t *testing.T) {
	t.Parallel()
	binary, err := bench.BuildBinary(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Quick()
	var log bytes.Buffer
	c.Binary, c.Dir, c.Progress = binary, t.TempDir(), &log
	began := time.Now()
	result, err := Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Logf("took %v\n%s", time.Since(began), log.String())
	for _, line := range result.Missed() {
		t.Error(line)
	}
}
