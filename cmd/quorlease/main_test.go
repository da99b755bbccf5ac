package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// update rewrites the golden files instead of comparing with them. A change is
// reviewed like code: scripts read these answers.
var update = flag.Bool("update", false, "rewrite golden files")

// TestMain makes this test binary the program as well: started as `quorlease`
// it is the real command line, in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(withoutLeaks{m}, map[string]func(){"quorlease": main, "curl": curl})
}

// withoutLeaks fails a run that leaves goroutines behind.
type withoutLeaks struct{ m *testing.M }

func (w withoutLeaks) Run() int {
	remove, err := programFirst()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	// The scripts wait for most of their time: as many at once as there are processors
	// leave those idle. What the command line of the test says counts all the same.
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := w.m.Run()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// outcome is what one command line came to.
type outcome struct {
	code           int
	stdout, stderr string
}

// command runs one command line in this process.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	return commandWith(t, t.Context(), "", args...)
}

func commandWith(t *testing.T, ctx context.Context, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// readIfAny is the text of a file, or "" where there is none yet.
func readIfAny(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(data)
}
