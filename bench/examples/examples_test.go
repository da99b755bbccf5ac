package examples_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/sdk/sdktest"
	"github.com/quorlease/quorlease/bench/upstream"
)

// TestExamples: each of them does what its page says. They follow one another, since they have one
// node, and each has limits of its own.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, g := range []struct {
		name, path, body string
		api              upstream.API
	}{
		{"openai", "/v1/chat/completions", `{"model": "gpt-4o-mini", ` + hello, upstream.OpenAI},
		{"azure", "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21", `{` + hello, upstream.Azure},
		{"anthropic", "/v1/messages", `{"model": "claude-sonnet-4-5", ` + hello, upstream.Anthropic},
		{"compatible", "/v1/chat/completions", `{"model": "llama-3.3-70b", ` + hello, upstream.OpenAI},
	} {
		t.Run("gateway_"+g.name, func(t *testing.T) {
			s := s.on(t)
			s.doctor(g.name)
			seen, provider := s.provider(g.api)
			url, admin := s.gateway(g.name, provider)
			headers := []string{"x-client-id", "notes", "x-quorlease-class", "live"}
			if g.name == "compatible" {
				headers = append(headers, "Authorization", "Bearer own")
			}
			if status, answer := s.call(http.MethodPost, url+g.path, g.body, headers...); status != http.StatusOK {
				t.Fatalf("%d %s", status, answer)
			}
			if n := seen.Ledger().Outcomes[upstream.Served]; n != 1 {
				t.Errorf("the provider has served %d calls, want 1", n)
			}
			_, figures := s.call(http.MethodGet, admin+"/metrics", "")
			for _, want := range []string{
				"\nquorlease_gateway_requests_total 1\n", "\nquorlease_gateway_unlimited_total 0\n",
				"\nquorlease_client_fail_open 0\n",
			} {
				if !strings.Contains(figures, want) {
					t.Errorf("no %q in the figures", strings.TrimSpace(want))
				}
			}
		})
	}
	t.Run("programs", func(t *testing.T) { s.on(t).programs() })
	t.Run("proxy", func(t *testing.T) { s.on(t).proxy() })
	t.Run("gate", func(t *testing.T) { s.on(t).gate() })
	t.Run("embedded", func(t *testing.T) { s.on(t).embedded() })
	t.Run("nginx", func(t *testing.T) { s.on(t).nginx() })
	t.Run("caddy", func(t *testing.T) { s.on(t).caddy() })
}

// hello is the rest of a question.
const hello = `"max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}`

// doctor finds nothing in the limits of an example.
func (s *site) doctor(name string) {
	s.Helper()
	s.do("doctor", "-f", filepath.Join(folder, "gateway", name, "limits.yaml"))
}

// programs asks through a gateway in each of the ways that are shown.
func (s *site) programs() {
	seen, provider := s.provider(upstream.OpenAI)
	url, _ := s.gateway("openai", provider)
	programs := filepath.Join(folder, "programs")
	asked := int64(0)
	ask := func(t *testing.T, want, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "GATEWAY="+url, "CLIENT=notes")
		out, err := cmd.CombinedOutput()
		asked++
		if got := seen.Ledger().Outcomes[upstream.Served]; err != nil || !strings.Contains(string(out), want) ||
			len(strings.TrimSpace(string(out))) == 0 || got != asked {
			t.Errorf("%v, %d of %d calls were served\n%s", err, got, asked, out)
		}
	}
	s.Run("curl", func(t *testing.T) {
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip("curl is not installed (Debian: curl): the script was not run")
		}
		ask(t, `"object":"chat.completion"`, "sh", filepath.Join(programs, "ask.sh"), "What is an hour?")
	})
	s.Run("go", func(t *testing.T) {
		program := s.on(t).build("programs/ask")
		ask(t, "", program, "What is a day?")
		s.on(t).obeys(program)
	})
	s.Run("node", func(t *testing.T) {
		modules := sdktest.Installed(t, filepath.Join(root, ".tools")).Modules()
		dir := t.TempDir()
		script, err := os.ReadFile(filepath.Join(programs, "ask.mjs"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "ask.mjs"), script, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		ask(t, "", "node", filepath.Join(dir, "ask.mjs"), "What is a week?")
	})
}

// embedded is a program that has its authority in it, twice.
func (s *site) embedded() {
	s.Helper()
	program, data := s.build("embedded"), filepath.Join(s.TempDir(), "state")
	for range 2 {
		cmd := exec.CommandContext(s.Context(), program, "--data", data,
			"--limits", filepath.Join(folder, "limits", "provider.yaml"))
		out, err := cmd.CombinedOutput()
		if want := "provider input_tokens used 2480 refunded 20\n"; err != nil || !strings.Contains(string(out), want) {
			s.Errorf("%v, no %q in\n%s", err, want, out)
		}
	}
}

// obeys: the program comes back when it is told to, and says that it does; and it does not where it
// is told to stop.
func (s *site) obeys(program string) {
	s.Helper()
	for _, stop := range []bool{false, true} {
		var attempts []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if attempts = append(attempts, r.Header.Get("X-Retry-Attempt")); len(attempts) > 1 {
				_, _ = w.Write([]byte(`{"choices": [{"message": {"content": "a minute"}}]}`))
				return
			}
			w.Header().Set("Retry-After", "1")
			if stop {
				w.Header().Set("X-Should-Retry", "false")
			}
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		cmd := exec.CommandContext(s.Context(), program)
		cmd.Env = append(os.Environ(), "GATEWAY="+server.URL)
		out, err := cmd.CombinedOutput()
		server.Close()
		want := "0 1"
		if stop {
			want = "0"
		}
		if got := strings.Join(attempts, " "); got != want || (err != nil) != stop {
			s.Errorf("told to stop %t: attempts %s, want %s; %v\n%s", stop, got, want, err, out)
		}
	}
}

// proxy is a server with a login, which the gateway believes.
func (s *site) proxy() {
	seen, provider := s.provider(upstream.OpenAI)
	ports, err := bench.FreePorts(1)
	if err != nil {
		s.Fatal(err)
	}
	s.start("listening on", bench.Program{
		Path: s.build("proxy"),
		Args: []string{
			"--endpoints", s.nodes.GRPC(0), "--listen", ports[0], "--upstream", provider,
			"--user", "ada:token-of-ada", "--user", "bob:token-of-bob",
		},
		Env: []string{"OPENAI_API_KEY=secret"},
	})
	base := "http://" + ports[0]
	if status, page := s.call(http.MethodGet, base+"/", ""); status != http.StatusOK || !strings.Contains(page, "/ai/") {
		s.Errorf("the page: %d %s", status, page)
	}
	url := base + "/ai/v1/chat/completions"
	body := `{"model": "gpt-4o-mini", ` + hello
	for token, want := range map[string]int{"token-of-ada": 200, "token-of-eve": 401} {
		status, answer := s.call(http.MethodPost, url, body, "Authorization", "Bearer "+token, "X-Client-Id", "bob")
		if status != want {
			s.Errorf("%s: %d %s, want %d", token, status, answer, want)
		}
	}
	if n := seen.Ledger().Outcomes[upstream.Served]; n != 1 {
		s.Errorf("the provider has served %d calls, want 1", n)
	}
	var usage string
	if !s.eventually(func() bool {
		usage = s.do("usage", "--by", "client", "--endpoints", s.nodes.GRPC(0))
		return strings.Contains(usage, "\nada ")
	}) || strings.Contains(usage, "\nbob ") {
		s.Errorf("counted for another than ada:\n%s", usage)
	}
}
