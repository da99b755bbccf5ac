package behind_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// crossing is a request or an answer as one of two ends has it.
type crossing struct {
	Start  string
	Header http.Header
	Body   string
}

// spied is a provider, and what it was asked and answered last.
type spied struct {
	http.Handler
	mu           sync.Mutex
	asked, wrote crossing // guarded by mu
	asks         int      // guarded by mu
}

// spy writes down an answer on its way.
type spy struct {
	http.ResponseWriter
	wrote crossing
}

func (s *spy) WriteHeader(status int) {
	s.wrote.Start, s.wrote.Header = fmt.Sprint(status), s.ResponseWriter.Header().Clone()
	s.ResponseWriter.WriteHeader(status)
}

func (s *spy) Write(p []byte) (int, error) {
	if s.wrote.Start == "" {
		s.WriteHeader(http.StatusOK)
	}
	s.wrote.Body += string(p)
	return s.ResponseWriter.Write(p)
}

func (s *spy) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// ServeHTTP notes both.
func (s *spied) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	out := &spy{ResponseWriter: w}
	asked := crossing{fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.ContentLength), r.Header.Clone(), string(body)}
	s.Handler.ServeHTTP(out, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.wrote = asked, out.wrote
	s.asks++
}

// last is what it was asked, and what it has answered.
func (s *spied) last() (asked, wrote crossing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.wrote
}

// shade is a gateway that only looks on, in front of a handler.
func shade(
	t *testing.T, deployment string, behind http.Handler, authority gateway.Authority,
) (*gateway.Gateway, string) {
	t.Helper()
	table, err := provider.Named(provider.NameOpenAI)
	if err != nil {
		t.Fatal(err)
	}
	book, err := who.New(who.Config{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	where, err := url.Parse(listen(t, behind))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Authority: authority, Who: book, Logger: slog.New(slog.DiscardHandler), Shadow: true,
		Deployments: []gateway.Deployment{{Name: deployment, Provider: table, Upstream: where}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, listen(t, g)
}

// away is who asks nodes that never answer: they take connections, and say nothing.
func away(t *testing.T) *client.Client {
	t.Helper()
	mute, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	var joined sync.WaitGroup
	joined.Go(func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
		}
	})
	c, err := client.New(client.Config{
		Endpoints: []string{mute.Addr().String()}, Client: "gateway", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = mute.Close()
		joined.Wait()
		for _, conn := range held {
			_ = conn.Close()
		}
	})
	return c
}

// TestShadowChangesNothing: what a provider is asked and what a program is told are the same bytes as without it.
func TestShadowChangesNothing(t *testing.T) {
	t.Parallel()
	server, err := upstream.New(upstream.Config{API: upstream.OpenAI, Clock: upstream.Speed(speed), TokensPerEvent: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	mux := http.NewServeMux()
	mux.Handle("/", server)
	mux.HandleFunc("/busy/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Retry-After"] = []string{"7"}
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"code":"rate_limit_exceeded"}}`)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
	})
	behind := &spied{Handler: mux}
	g, address := shade(t, "narrow-shadow", behind, ask(t))
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	for _, row := range []struct{ name, method, path, body, status string }{
		{"plain", "POST", "/v1/chat/completions", prompt("plain", ""), "200"},
		{"stream", "POST", "/v1/chat/completions", prompt("stream", `,"stream":true`), "200"},
		{"an error", "POST", "/v1/chat/completions", `{"model":`, "400"},
		{"a 429", "POST", "/busy/v1/chat/completions?a=1;b=%zz", prompt("busy", ""), "429"},
		{"a redirect", "GET", "/moved", "", "302"},
		{"HEAD", "HEAD", "/moved", "", "302"},
		{"a strange path", "PUT", "/a//b%2Fc/./%2e%2e", "any", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), row.method, address+row.path, strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{
				"X-Client-Id": {"a"}, "Cookie": {"c=1"}, "X-Forwarded-For": {"10.0.0.1"}, "Forwarded": {"for=1"},
				"Authorization": {"Bearer mine"}, "Accept-Encoding": {"br"}, "User-Agent": {"mine"}, "X-Coalesce": {"false"},
			}
			sent := crossing{fmt.Sprint(row.method, " ", row.path, " ", len(row.body)), r.Header.Clone(), row.body}
			if row.body != "" || row.method == http.MethodPost || row.method == http.MethodPut {
				sent.Header["Content-Length"] = []string{fmt.Sprint(len(row.body))}
			}
			answer, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			asked, wrote := behind.last()
			if diff := cmp.Diff(sent, asked); diff != "" {
				t.Errorf("-sent +arrived:\n%s", diff)
			}
			// What the server itself adds when it writes.
			for _, name := range []string{"Date", "Content-Length"} {
				answer.Header.Del(name)
				wrote.Header.Del(name)
			}
			if row.method == http.MethodHead {
				wrote.Body = ""
			}
			got := crossing{fmt.Sprint(answer.StatusCode), answer.Header, string(body)}
			if diff := cmp.Diff(wrote, got); diff != "" || row.status != "" && got.Start != row.status {
				t.Errorf("-answered +told:\n%s", diff)
			}
		})
	}
	// One request a minute is all that the limit gives.
	if !until(t.Context(), func() bool { return g.Shadow().Requests == 7 }) || g.Shadow().Refused < 4 {
		t.Errorf("%+v", g.Shadow())
	}
}

// TestShadowOfNodesThatAreAway: who is forwarded does not notice, and nothing piles up.
func TestShadowOfNodesThatAreAway(t *testing.T) {
	behind := &spied{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"a":1}`) })}
	g, address := shade(t, "deaf-shadow", behind, away(t))
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	before := runtime.NumGoroutine()
	most := 0
	const each, workers = 100, 30
	var joined sync.WaitGroup
	for i := range workers {
		joined.Go(func() {
			for n := range each {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/chat/completions",
					strings.NewReader(prompt(fmt.Sprint(i, n), "")))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("X-Client-Id", "a")
				answer, err := transport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%d", answer.StatusCode)
				}
			}
		})
	}
	for ctx, stop := context.WithTimeout(t.Context(), 10*time.Second); ; {
		behind.mu.Lock()
		asks := behind.asks
		behind.mu.Unlock()
		most = max(most, runtime.NumGoroutine())
		if asks == each*workers || !pause(ctx, 10*time.Millisecond) {
			stop()
			break
		}
	}
	joined.Wait()
	// Each decision is one goroutine, of which there may be 1,024, and what asks for it.
	if behind.asks != each*workers || most-before > 4*1024 {
		t.Errorf("%d of %d forwarded, %d goroutines more than before", behind.asks, each*workers, most-before)
	}
	if !until(t.Context(), func() bool { return g.Shadow().Requests == each*workers }) {
		t.Errorf("%+v", g.Shadow())
	}
	t.Logf("%d goroutines more than before; %+v", most-before, g.Shadow())
}

// TestShadowBecomesAnotherProtocol: a connection that is upgraded passes both ways.
func TestShadowBecomesAnotherProtocol(t *testing.T) {
	t.Parallel()
	_, address := shade(t, "deaf-upgraded", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := both.ReadString('\n')
		fmt.Fprint(conn, "heard ", line)
	}), ask(t))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "hello\n")
	heard, err := io.ReadAll(from)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols || string(heard) != "heard hello\n" {
		t.Errorf("%d %q, %v", answer.StatusCode, heard, err)
	}
	answer.Body.Close()
}
