package examples_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/upstream"
)

// service is what stands behind a proxy. It drops so many connections without an answer.
type service struct {
	mu       sync.Mutex
	drops    int      // guarded by mu
	attempts []string // guarded by mu
	bodies   []string // guarded by mu
}

// ServeHTTP notes what comes.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.attempts = append(s.attempts, r.Header.Get("X-Retry-Attempt"))
	s.bodies = append(s.bodies, string(body))
	dropped := s.drops > 0
	s.drops--
	s.mu.Unlock()
	if dropped {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == "/forbidden" {
		w.WriteHeader(http.StatusForbidden)
	}
	fmt.Fprint(w, r.Method, " ", r.RequestURI)
}

// seen forgets what came, and returns it. drops is how many of the next ones are dropped.
func (s *service) seen(drops int) (attempts, bodies string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempts, bodies = strings.Join(s.attempts, ","), strings.Join(s.bodies, ",")
	s.attempts, s.bodies, s.drops = nil, nil, drops
	return attempts, bodies
}

// proxied is a proxy with what it asks and what stands behind it.
type proxied struct {
	*site
	service *service
	url     string
	// stop ends what the proxy asks.
	stop func()
}

// behind starts a proxy by a file of the examples, as program says. Its ports become free ones.
func (s *site) behind(file string, program func(path string) bench.Program, ready string) *proxied {
	s.Helper()
	// To proxies all who ask from here are one client, whose retries count on.
	s = s.anew(s.Context())
	from := filepath.Join(folder, file)
	limits := filepath.Join(filepath.Dir(from), "limits.yaml")
	s.do("limits", "apply", "--prune", "-f", limits, "--endpoints", s.nodes.GRPC(0))
	p := &proxied{site: s, service: &service{}}
	back, err := upstream.Listen(p.service)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = back.Close() })
	ports, err := bench.FreePorts(3)
	if err != nil {
		s.Fatal(err)
	}
	out := &bench.Printed{}
	gateway, err := bench.StartProcess(bench.Program{
		Path: s.binary, Log: out,
		Args: []string{
			"gateway", "--upstream", back.URL, "--listen", ports[0], "--authorize", ports[1], "--endpoints", s.nodes.GRPC(0),
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	p.stop = gateway.Kill
	s.Cleanup(gateway.Kill)
	if !s.eventually(func() bool { return strings.Contains(out.String(), "authorize="+ports[1]) }) {
		s.Fatal(out)
	}
	config, err := os.ReadFile(from)
	if err != nil {
		s.Fatal(err)
	}
	path := filepath.Join(s.TempDir(), filepath.Base(from))
	replaced := strings.NewReplacer(
		"127.0.0.1:8080", ports[2], "127.0.0.1:7403", ports[1], "127.0.0.1:8000", strings.TrimPrefix(back.URL, "http://"),
		"http_port 8080", "http_port "+ports[2][strings.LastIndex(ports[2], ":")+1:],
	).Replace(string(config))
	if err := os.WriteFile(path, []byte(replaced), 0o600); err != nil {
		s.Fatal(err)
	}
	p.url = "http://" + ports[2]
	if ready != "" {
		s.start(ready, program(path))
		return p
	}
	process, err := bench.StartProcess(program(path))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(process.Kill)
	return p
}

// answers is a request's answer, with its headers.
func (p *proxied) answers(method, path, body string, headers ...string) (*http.Response, string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.Fatal(err)
	}
	return answer, string(text)
}

// refuses asks until it is refused, and says how.
func (p *proxied) refuses(headers ...string) (answer *http.Response, text string, passed int) {
	p.Helper()
	for ; passed < 100; passed++ {
		if answer, text = p.answers(http.MethodPost, "/", "x", headers...); answer.StatusCode != http.StatusOK {
			break
		}
	}
	return answer, text, passed
}

// passes what no limit holds back, as it was sent.
func (p *proxied) passes() {
	p.Helper()
	for _, row := range []struct{ method, path, body, want string }{
		{"GET", "/a?b=c", "", "GET /a?b=c"},
		{"POST", "/a/", "a body", "POST /a/"},
		{"HEAD", "/a", "", ""},
		{"GET", "/forbidden", "", "GET /forbidden"},
	} {
		answer, text := p.answers(row.method, row.path, row.body,
			"X-Original-URI", "/elsewhere", "X-Forwarded-Uri", "/elsewhere", "X-Original-Method", "DELETE",
			"X-Quorlease-Route", "none", "X-Client-Id", "somebody else", "X-Filler", strings.Repeat("f", 6000))
		want := http.StatusOK
		if row.path == "/forbidden" {
			want = http.StatusForbidden
		}
		_, bodies := p.service.seen(0)
		if answer.StatusCode != want || text != row.want || bodies != row.body {
			p.Errorf("%s %s: %d %q with the body %q", row.method, row.path, answer.StatusCode, text, bodies)
		}
	}
}

// installed wants a program of Debian's.
func installed(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			t.Skipf("%s is not installed (Debian: %s): its recipe was not run", name, debian)
		}
	}
	return path
}

// nginx asks by auth_request.
func (s *site) nginx() {
	path := installed(s.T, "nginx", "nginx-light")
	p := s.behind("nginx/nginx.conf", func(config string) bench.Program {
		return bench.Program{Path: path, Args: []string{"-p", filepath.Dir(config), "-c", config}, Log: s.log}
	}, "")
	if !s.eventually(func() bool {
		answer, err := http.Get(p.url + "/ready")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	}) {
		s.Fatal("nginx does not answer")
	}
	p.service.seen(0)
	p.passes()
	s.Run("a_proxy_says_which_attempt_it_is", func(t *testing.T) {
		p.service.seen(1)
		answer, _ := p.answers(http.MethodPost, "/", "again", "X-Retry-Attempt", "0")
		if attempts, bodies := p.service.seen(1); answer.StatusCode != http.StatusOK || attempts != "0,1" ||
			bodies != "again,again" {
			t.Errorf("%d, attempts %q with %q", answer.StatusCode, attempts, bodies)
		}
		// What a client counts already counts on.
		p.answers(http.MethodPost, "/", "again", "X-Retry-Attempt", "2")
		if attempts, _ := p.service.seen(0); attempts != "2,2" {
			t.Errorf("attempts %q of a client's second retry", attempts)
		}
		// Its own tries are the client's retries, and run out.
		spent := false
		for range 20 {
			p.service.seen(1)
			answer, _ := p.answers(http.MethodPost, "/", "again")
			attempts, _ := p.service.seen(0)
			if answer.StatusCode == http.StatusTooManyRequests && attempts == "0" &&
				answer.Header.Get("X-Should-Retry") == "false" {
				spent = true
				break
			}
		}
		if !spent {
			t.Error("no try was refused for the retry budget")
		}
	})
	answer, text, passed := p.refuses()
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" ||
		!strings.Contains(text, `"status": 429`) {
		s.Errorf("after %d: %d %v %s", passed, answer.StatusCode, answer.Header, text)
	}
	// Nobody answers the question: requests pass.
	p.stop()
	if answer, text := p.answers(http.MethodGet, "/open", ""); answer.StatusCode != http.StatusOK {
		s.Errorf("without a gateway: %d %s", answer.StatusCode, text)
	}
}

// caddy asks by forward_auth.
func (s *site) caddy() {
	path := installed(s.T, "caddy", "caddy")
	p := s.behind("caddy/Caddyfile", func(config string) bench.Program {
		return bench.Program{
			Path: path, Args: []string{"run", "--config", config, "--adapter", "caddyfile"},
			Env: []string{"HOME=" + s.TempDir()},
		}
	}, "serving initial configuration")
	p.passes()
	answer, text := p.answers(http.MethodPost, "/", "x", "X-Retry-Attempt", "1")
	if attempts, _ := p.service.seen(0); answer.StatusCode != http.StatusOK || attempts != "1" {
		s.Errorf("%d %s, attempt %q", answer.StatusCode, text, attempts)
	}
	answer, text, passed := p.refuses()
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" ||
		!strings.Contains(text, `"reason":"RATE"`) {
		s.Errorf("after %d: %d %v %s", passed, answer.StatusCode, answer.Header, text)
	}
}
