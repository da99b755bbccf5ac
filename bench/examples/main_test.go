package examples_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/upstream"
)

func TestMain(m *testing.M) {
	// The goroutine that starts processes stays as long as this one.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// root is the tree, and folder that of the examples.
const root, folder = "../..", "../../examples"

// site is a node and the program, for tests that follow one another.
type site struct {
	*testing.T
	binary string
	nodes  *bench.Nodes
	log    *bench.Printed
}

// open starts one node: that is enough to see which limits count.
func open(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Minute, errors.New("it took 3 minutes"))
	defer cancel()
	binary, err := bench.BuildBinary(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return (&site{T: t, binary: binary, log: &bench.Printed{}}).anew(ctx)
}

// anew is a site with a node of its own, that knows nothing of who asked before.
func (s *site) anew(ctx context.Context) *site {
	t := s.T
	t.Helper()
	nodes, err := bench.StartNodes(bench.NodesConfig{Binary: s.binary, Dir: t.TempDir(), Count: 1, Log: s.log})
	if err != nil {
		t.Fatal(err)
	}
	s = &site{t, s.binary, nodes, s.log}
	t.Cleanup(func() {
		if err := s.nodes.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	if err := s.nodes.Healthy(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// on is the same site for a part of the test.
func (s *site) on(t *testing.T) *site { return &site{t, s.binary, s.nodes, s.log} }

// do runs the program, which has to succeed.
func (s *site) do(args ...string) string {
	s.Helper()
	out, err := exec.CommandContext(s.Context(), s.binary, args...).CombinedOutput()
	if err != nil {
		s.Fatalf("quorlease %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// provider starts a simulated one.
func (s *site) provider(api upstream.API) (*upstream.Server, string) {
	s.Helper()
	server, err := upstream.New(upstream.Config{API: api, Clock: upstream.Speed(60)})
	if err != nil {
		s.Fatal(err)
	}
	l, err := upstream.Listen(server)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := l.Close(); err != nil {
			s.Error(err)
		}
	})
	return server, l.URL
}

// start starts a program that runs until the test is over, and waits for a word in what it prints.
func (s *site) start(until string, p bench.Program) *bench.Printed {
	s.Helper()
	out := &bench.Printed{}
	p.Log = out
	process, err := bench.StartProcess(p)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(process.Kill)
	if !s.eventually(func() bool { return strings.Contains(out.String(), until) }) {
		s.Fatalf("%s %s: no %q in\n%s", p.Path, strings.Join(p.Args, " "), until, out)
	}
	return out
}

// eventually waits for a condition, 20 s at most, and says whether it came true.
func (s *site) eventually(holds func() bool) bool {
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

var upstreamField = regexp.MustCompile(`(?m)^( +upstream: ).*$`)

// gateway starts one by the files of a folder, with the provider in the place of the real one. It
// returns where programs ask, and where its figures are.
func (s *site) gateway(name, provider string) (url, admin string) {
	s.Helper()
	from := filepath.Join(folder, "gateway", name)
	s.do("limits", "apply", "--prune", "-f", filepath.Join(from, "limits.yaml"), "--endpoints", s.nodes.GRPC(0))
	config, err := os.ReadFile(filepath.Join(from, "gateway.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	if n := len(upstreamField.FindAll(config, -1)); n != 1 {
		s.Fatalf("%s: %d upstreams, want 1", name, n)
	}
	file := filepath.Join(s.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, upstreamField.ReplaceAll(config, []byte("${1}"+provider)), 0o600); err != nil {
		s.Fatal(err)
	}
	ports, err := bench.FreePorts(2)
	if err != nil {
		s.Fatal(err)
	}
	s.start("serving: ", bench.Program{
		Path: s.binary,
		Args: []string{
			"gateway", "--config", file, "--endpoints", s.nodes.GRPC(0), "--listen", ports[0], "--admin", ports[1],
		},
		Env: []string{"OPENAI_API_KEY=secret", "AZURE_OPENAI_API_KEY=secret", "ANTHROPIC_API_KEY=secret"},
	})
	return "http://" + ports[0], "http://" + ports[1]
}

// call sends a request, and returns the status and the body of the answer.
func (s *site) call(method, url, body string, headers ...string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

// build builds one of the examples.
func (s *site) build(name string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), filepath.Base(name))
	build := exec.CommandContext(s.Context(), "go", "build", "-o", path, "./examples/"+name)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		s.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return path
}
