package languages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench"
)

func TestMain(m *testing.M) {
	// The goroutine that starts processes stays as long as this one.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"),
		goleak.Cleanup(func(code int) {
			if built.folder != "" {
				_ = os.RemoveAll(built.folder)
			}
			os.Exit(code)
		}))
}

// root is the tree.
const root = "../.."

// site is three nodes and the program.
type site struct {
	binary string
	nodes  *bench.Nodes
	// killed is the node that was killed last because it led.
	killed int
}

// open starts three nodes.
func open(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Minute, errors.New("it took 3 minutes"))
	defer cancel()
	binary, err := bench.BuildBinary(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, log := &site{binary: binary}, &bench.Printed{}
	s.nodes, err = bench.StartNodes(bench.NodesConfig{Binary: binary, Dir: t.TempDir(), Count: 3, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.nodes.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	if err := s.nodes.Healthy(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// apply makes the limits those of a file.
func (s *site) apply(t *testing.T, file string) {
	t.Helper()
	command := exec.CommandContext(
		t.Context(), s.binary, "limits", "apply", "--prune", "-f", file, "--endpoints", s.nodes.GRPC(0),
	)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("apply %s: %v\n%s", file, err, out)
	}
}

// curl sends a request as the program of that name does.
func (s *site) curl(t *testing.T, path string, body any) (answer map[string]any) {
	t.Helper()
	needs(t, "curl", "curl")
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(
		t.Context(), "curl", "-s", "http://"+s.nodes.HTTP(1)+path, "-H", "Content-Type: application/json", "-d", string(data),
	).Output()
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		t.Fatalf("curl: %v: %s", err, out)
	}
	return answer
}

// needs skips a test that can't be run without a program.
func needs(t *testing.T, program, debian string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed (Debian: %s): its clients were not driven", program, debian)
	}
}

// send sends a request and reads the answer, whatever its status.
func send(t *testing.T, method, url string, body any) (answer map[string]any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if data, err = io.ReadAll(response.Body); err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", url, err, data)
	}
	return answer
}

// eventually waits for a condition, 20 s at most.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !holds() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// toolchain runs programs of a language.
type toolchain struct {
	program string
	// args stand before the name of a script below dir.
	args []string
	dir  string
	env  []string
}

// python is Python with the package of the tree, in which a warning is an error.
func python(t *testing.T) toolchain {
	t.Helper()
	needs(t, "python3", "python3")
	folder, err := filepath.Abs(filepath.Join(root, "clients", "python"))
	if err != nil {
		t.Fatal(err)
	}
	return toolchain{
		"python3",
		[]string{"-X", "dev", "-W", "error"},
		filepath.Join(folder, "tests"),
		[]string{"PYTHONPATH=" + folder, "PYTHONDONTWRITEBYTECODE=1"},
	}
}

func mustStart(t *testing.T, c toolchain, script string) adapter {
	t.Helper()
	p, err := startAdapter(c.env, c.program, append(c.args[:len(c.args):len(c.args)], filepath.Join(c.dir, script))...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs a program to its end, and returns what it said.
func (c toolchain) run(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), c.program, append(c.args[:len(c.args):len(c.args)], args...)...)
	command.Dir = c.dir
	command.Env = append(append(command.Environ(), c.env...), env...)
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
