package languages_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/httpwrap"
)

// service refuses its first request for a moment, and answers the second. It reads which attempt
// each one is as a gateway does.
type service struct {
	url string
	mu  sync.Mutex
	// Guarded by mu.
	attempts []uint32
	unmarked int
	came     []time.Time
}

// serviceHint is how long it asks to wait.
const serviceHint = 30 * time.Millisecond

func serve(t *testing.T) *service {
	t.Helper()
	reader, err := attempt.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		declared := reader.Read(r.Header)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !declared.Marked {
			s.unmarked++
		}
		s.attempts, s.came = append(s.attempts, declared.Retries), append(s.came, time.Now())
		if len(s.attempts) == 1 {
			w.Header().Set("Retry-After-Ms", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, "an hour")
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// check: both requests said which attempt they are, and the second one waited.
func (s *service) check(t *testing.T, said string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attempts) != 2 || s.attempts[0] != 0 || s.attempts[1] != 1 || s.unmarked != 0 {
		t.Fatalf("attempts %v, %d of them unmarked: want 0 and 1, marked\n%s", s.attempts, s.unmarked, said)
	}
	if gap := s.came[1].Sub(s.came[0]); gap < serviceHint {
		t.Errorf("it came back after %s, and was told %s", gap, serviceHint)
	}
	if !strings.Contains(said, "an hour") {
		t.Errorf("it said %q, and was told an hour", said)
	}
}

// TestSanctionedPaths: whoever sends by one of the ways that are meant for it says which attempt
// each request is, and waits as long as it is told.
func TestSanctionedPaths(t *testing.T) {
	t.Parallel()
	nodes := open(t)
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	text := "limits: [{name: demo, rate: {requests: 100/s}}]\n"
	if err := os.WriteFile(limits, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes.apply(t, limits)
	where := []string{"NODES=http://" + nodes.nodes.HTTP(0) + ",http://" + nodes.nodes.HTTP(1)}
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("S1-45_go", func(t *testing.T) {
		s := serve(t)
		s.check(t, throughWrapper(t, s.url))
	})
	t.Run("S1-45_python", func(t *testing.T) {
		s := serve(t)
		said, err := python(t).run(t, where, filepath.Join(examples, "python", "ask.py"), s.url)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		s.check(t, said)
	})
	t.Run("S1-45_typescript", func(t *testing.T) {
		s := serve(t)
		node := typescript(t)
		said, err := node.run(t, where, filepath.Join(node.dir, "example", "ask.js"), s.url)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		s.check(t, said)
	})
	t.Run("S1-45_proxy", func(t *testing.T) {
		needs(t, "curl", "curl")
		s := serve(t)
		said, err := exec.CommandContext(t.Context(), "curl", "-s", throughProxy(t, s.url), "-d", "how long?").Output()
		if err != nil {
			t.Fatal(err)
		}
		s.check(t, string(said))
	})
}

// throughWrapper asks as a Go program does.
func throughWrapper(t *testing.T, url string) string {
	t.Helper()
	wrapped, err := httpwrap.New(httpwrap.Config{})
	if err != nil {
		t.Fatal(err)
	}
	program := http.Client{Transport: wrapped}
	defer program.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := program.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// throughProxy starts the proxy of the examples, and says where it is.
func throughProxy(t *testing.T, upstream string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "marker")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./examples/marker")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the proxy: %v\n%s", err, out)
	}
	log := &bench.Printed{}
	process, err := bench.StartProcess(bench.Program{
		Path: program, Args: []string{"--listen", "127.0.0.1:0", "--upstream", upstream}, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	eventually(t, func() bool { return strings.HasSuffix(log.String(), "\n") })
	address, ok := strings.CutPrefix(strings.TrimSpace(log.String()), "listening on ")
	if !ok {
		t.Fatalf("the proxy says %q", log.String())
	}
	return "http://" + address
}
