package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptPatience bounds every wait in a script. It is long because a busy
// machine is no failure.
const scriptPatience = 30 * time.Second

// TestScripts drives the real program. Each script has ports of its own in its
// environment: G1 to G5 for clients, P1 to P5 for peers, H1 to H5 for HTTP.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return ownPorts(env.Setenv) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": scriptCode, "await": scriptAwait, "until": scriptUntil, "capture": scriptCapture,
		},
	})
}

// portsPerKind is how many consecutive ports of each kind a script gets.
const portsPerKind = 5

// ownPorts finds free ports and puts them into an environment, where `dev`
// takes its own from, and the client commands their endpoints.
func ownPorts(setenv func(name, value string)) error {
	var bases [3]int
	for i, kind := range []string{"G", "P", "H"} {
		base, err := freeRange(portsPerKind)
		if err != nil {
			return err
		}
		bases[i] = base
		for n := range portsPerKind {
			setenv(fmt.Sprintf("%s%d", kind, n+1), strconv.Itoa(base+n))
		}
	}
	setenv("QUORLEASE_GRPC_PORT", strconv.Itoa(bases[0]))
	setenv("QUORLEASE_PEER_PORT", strconv.Itoa(bases[1]))
	setenv("QUORLEASE_HTTP_PORT", strconv.Itoa(bases[2]))
	var endpoints []string
	for n := range 3 {
		endpoints = append(endpoints, fmt.Sprintf("127.0.0.1:%d", bases[0]+n))
	}
	setenv("QUORLEASE_ENDPOINTS", strings.Join(endpoints, ","))
	// An election takes longer than it should where many tests share few cores.
	setenv("QUORLEASE_TIMEOUT", "20s")
	return nil
}

// Ports for tests lie below those that the system gives to outgoing connections.
// Each test gets others than the tests before it, from a place that differs from
// one test process to the next.
const lowestPort, highestPort = 15000, 32000

var (
	firstPort = rand.IntN(highestPort - lowestPort)
	portsUsed atomic.Int64
)

// freeRange finds consecutive ports that are free.
func freeRange(n int) (int, error) {
	for range 1000 {
		base := lowestPort + (firstPort+int(portsUsed.Add(int64(n))))%(highestPort-lowestPort-n)
		free := true
		for port := base; port < base+n && free; port++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if free = err == nil; free {
				free = l.Close() == nil
			}
		}
		if free {
			return base, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

// scriptCode is `code N program args…`: the program must end with exit code N.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// exitCode is that of a program which ended with err.
func exitCode(err error) int {
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.ExitCode()
	default:
		return -1
	}
}

// scriptAwait is `await file pattern`: it waits until a line of the file, which
// may not exist yet, matches.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await file pattern")
	}
	pattern := regexp.MustCompile("(?m)" + args[1])
	text := ""
	if !eventually(func() bool {
		text = readIfAny(ts.MkAbs(args[0]))
		return pattern.MatchString(text)
	}) {
		ts.Fatalf("no %q in %s after %s:\n%s", args[1], args[0], scriptPatience, text)
	}
}

// scriptUntil is `until program args…`: it runs a program again and again until
// it succeeds.
func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until program args…")
	}
	var err error
	if !eventually(func() bool {
		err = ts.Exec(args[0], args[1:]...)
		return err == nil
	}) {
		ts.Fatalf("%q still fails after %s: %v", args, scriptPatience, err)
	}
}

// scriptCapture is `capture NAME file pattern`: it sets a variable to what the
// first group matched. The file may be stdout or stderr.
func scriptCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: capture NAME file pattern")
	}
	text := ts.ReadFile(args[1])
	match := regexp.MustCompile("(?m)" + args[2]).FindStringSubmatch(text)
	if len(match) < 2 {
		ts.Fatalf("no %q in:\n%s", args[2], text)
	}
	ts.Setenv(args[0], match[1])
}

// eventually looks at a condition until it holds or the patience is over.
func eventually(holds func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(scriptPatience); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return true
		}
	}
	return false
}
