// Command runtests runs "go test -json" with the arguments it is given, prints
// what a person wants to read of it, and names every test that was skipped.
//
// A skipped test is a claim that nothing checked. Plain "go test" hides skips;
// here each is one line with its reason, and with -strict (what CI uses) any
// skip fails the run. With -some a run in which no test ran fails too, so that a
// -run that matches nothing any more is noticed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// event is one line of "go test -json" (see "go doc test2json").
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

func main() {
	strict := flag.Bool("strict", false, "a skipped test fails the run")
	some := flag.Bool("some", false, "a run without a test fails")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, options{*strict, *some}, flag.Args()))
}

type options struct{ strict, some bool }

func run(ctx context.Context, o options, args []string) int {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start go test:", err)
		return 1
	}
	report := newReport(os.Stdout)
	report.readAll(stdout)
	err = command.Wait()
	report.summary()
	switch {
	case err != nil:
		return 1
	case o.some && report.passed == 0:
		fmt.Println("no test ran:", strings.Join(args, " "))
		return 1
	case o.strict && len(report.skips) > 0:
		fmt.Println("a skipped test fails this run: install what it names")
		return 1
	}
	return 0
}

// report turns events into lines as they come, and counts.
type report struct {
	out            io.Writer
	passed, failed int
	skips          []string
	// Output of tests that have not ended, and of packages (test ""), by
	// package and test.
	pending map[[2]string]*strings.Builder
}

func newReport(out io.Writer) *report {
	return &report{out: out, pending: make(map[[2]string]*strings.Builder)}
}

func (r *report) readAll(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.read(line)
		}
		if err != nil {
			return
		}
	}
}

func (r *report) read(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(r.out, line)
		return
	}
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if r.pending[key] == nil {
			r.pending[key] = &strings.Builder{}
		}
		r.pending[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		r.end(e, key)
	}
}

// end prints a finished package's line, a failed test's output and a skipped
// test's reason, and forgets the rest.
func (r *report) end(e event, key [2]string) {
	output := ""
	if r.pending[key] != nil {
		output = r.pending[key].String()
		delete(r.pending, key)
	}
	if e.Test == "" {
		r.endPackage(e, output)
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "%s: %s:\n%s", e.Package, e.Test, output)
	case "skip":
		name := strings.TrimPrefix(e.Package, "github.com/quorlease/quorlease/") + " " + e.Test
		line := fmt.Sprintf("SKIPPED %s: %s", name, reason(output))
		r.skips = append(r.skips, line)
		fmt.Fprintln(r.out, line)
	}
}

func (r *report) endPackage(e event, output string) {
	switch {
	case e.Action == "fail":
		// A crash of the test binary leaves its trace in the output of the
		// test that was running, which never ends by itself.
		for key, rest := range r.pending {
			if key[0] == e.Package {
				fmt.Fprint(r.out, rest.String())
				delete(r.pending, key)
			}
		}
		fmt.Fprint(r.out, output)
	case strings.Contains(output, "[no test files]"), strings.Contains(output, "[no tests to run]"):
	default:
		fmt.Fprintf(r.out, "ok   %s %.1fs\n", e.Package, e.Elapsed)
	}
}

// reason is what the test said when it skipped: its last line of output that
// is not the framework's own.
func reason(output string) string {
	said := "no reason given"
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = line
		}
	}
	return said
}

func (r *report) summary() {
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skips))
}
