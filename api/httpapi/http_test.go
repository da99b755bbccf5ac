package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/quorlease/quorlease/api/httpapi"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster/events"
)

// A page whose name was made to point at this machine says so in its Host.
func TestForeignHostsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for host, want := range map[string]int{
		"evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:80": 421, "[::1].evil": 421, "..": 421,
		"localhost": 200, "LOCALHOST:7301": 200, "localhost.": 200, "127.0.0.1": 200, "[::1]:7301": 200,
		"10.1.2.3:80": 200, "node1.example": 200, "Node1.Example:7301": 200, "node2.example": 421,
	} {
		for _, path := range []string{"/healthz", "/v1/cluster", "/metrics"} {
			if code, _, body := s.do(request{method: "GET", path: path, host: host}); code != want {
				t.Errorf("%s at %q: %d, want %d: %s", path, host, code, want, body)
			}
		}
	}
}

// A page of another origin can neither change anything nor be answered as if it
// could.
func TestForeignOriginsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	apply := request{method: "POST", path: "/v1/limits:apply", kind: "application/json", body: `{}`}
	for _, test := range []struct {
		headers map[string]string
		want    int
	}{
		{nil, 200},
		{map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{map[string]string{"Origin": "https://evil.example"}, 403},
		{map[string]string{"Origin": "null"}, 403},
		{map[string]string{"Origin": s.url}, 200},
	} {
		apply.headers = test.headers
		code, header, body := s.do(apply)
		if code != test.want {
			t.Errorf("%v: %d, want %d: %s", test.headers, code, test.want, body)
		}
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: other origins may read it", test.headers)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"} {
		apply.headers, apply.kind = nil, kind
		if code, _, body := s.do(apply); code != 415 {
			t.Errorf("content type %q: %d: %s", kind, code, body)
		}
	}
	apply.kind = "application/json; charset=utf-8"
	if code, _, body := s.do(apply); code != 200 {
		t.Errorf("with a charset: %d: %s", code, body)
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/healthz", "/metrics", "/v1/limits", "/nothing", "/v1/limits/%3Cimg%20src=x%3E"} {
		_, header, body := s.do(request{method: "GET", path: path})
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if strings.Contains(body, "<img") || strings.Contains(header.Get("Content-Type"), "html") {
			t.Errorf("%s: %s %s", path, header.Get("Content-Type"), body)
		}
	}
}

func TestG11NobodyFromElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *httpapi.Config) {
		c.Identify = func(*peer.Peer) (server.Identity, error) {
			return server.Loopback(&peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}})
		}
	})
	for path, want := range map[string]int{
		"/v1/limits": 401, "/v1/cluster": 401, "/metrics": 401, "/v1/events": 401, "/healthz": 200, "/readyz": 200,
	} {
		code, _, body := s.do(request{
			method: "GET", path: path, headers: map[string]string{"X-Forwarded-For": "127.0.0.1"},
		})
		if code != want {
			t.Errorf("%s: %d, want %d: %s", path, code, want, body)
		}
	}
	// What they send is not even read.
	for _, kind := range []string{"application/json", "application/yaml", "text/plain"} {
		if code, _, body := s.do(request{method: "POST", path: "/v1/limits:apply", kind: kind, body: "]"}); code != 401 {
			t.Errorf("a limits file as %s: %d, want 401: %s", kind, code, body)
		}
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, test := range []struct {
		name string
		request
		code int
		want string
	}{
		{"no body", request{method: "POST", path: "/v1/admission:acquire", kind: "application/json"}, 400, "body: missing"},
		{
			"no JSON",
			request{method: "POST", path: "/v1/admission:acquire", kind: "application/json", body: "{"},
			400, "body: ",
		},
		{
			"two values",
			request{method: "POST", path: "/v1/admission:acquire", kind: "application/json", body: "{}{}"},
			400, "body: ",
		},
		{"a float", request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{"charges":[{"amount":1.5}]}`,
		}, 400, "1.5"},
		{"A10_MaxInt64+1", request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{"charges":[{"amount":"9223372036854775808"}]}`,
		}, 400, "9223372036854775808"},
		{"A22_invalid_UTF-8", request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: "{\"client\":\"\xff\"}",
		}, 400, "invalid UTF-8"},
		{"field twice", request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{"client":"a","client":"b"}`,
		}, 400, "duplicate field"},
		{"large body", request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{"client":"` + strings.Repeat("c", 70<<10) + `"}`,
		}, 413, "more than 65536 bytes"},
		{"large file", request{
			method: "POST", path: "/v1/limits:apply", kind: "application/yaml",
			body: strings.Repeat("#", 600<<10),
		}, 413, "more than 524288 bytes"},
		{"query beside a body", request{
			method: "POST", path: "/v1/admission:acquire?track=true", kind: "application/json",
			body: `{}`,
		}, 400, "query: not supported here"},
		{"unknown parameter", request{method: "GET", path: "/v1/limits?nam=a"}, 400, "nam: unknown parameter"},
		{"parameter twice", request{method: "GET", path: "/v1/limits?name=a&name=b"}, 400, "name: given 2 times"},
		{"bad boolean", request{method: "GET", path: "/v1/limits?stale=1"}, 400, "want true or false"},
		{"bad query", request{method: "GET", path: "/v1/limits?%zz"}, 400, "query: can't be read"},
		{"name twice", request{method: "GET", path: "/v1/limits/a?name=b"}, 400, "name: is in the path already"},
		{"bad name", request{method: "GET", path: "/v1/limits/a/b"}, 400, "is not a name"},
		{"message in a query", request{
			method: "POST", path: "/v1/limits:apply?limits=x", kind: "application/yaml",
			body: "limits: []",
		}, 400, "limits: unknown parameter"},
		{"no name", request{method: "GET", path: "/v1/limits/"}, 404, "no such path"},
		{"double slash", request{method: "GET", path: "//v1/limits"}, 404, "no such path"},
		{"upper case", request{method: "GET", path: "/V1/limits"}, 404, "no such path"},
		{"change by GET", request{method: "GET", path: "/v1/limits:apply"}, 405, "method not allowed"},
		{
			"bad last event",
			request{method: "GET", path: "/v1/events", headers: map[string]string{"Last-Event-ID": "x"}},
			400, "Last-Event-ID",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, _, body := s.do(test.request)
			if code != test.code || !strings.Contains(body, test.want) {
				t.Errorf("%d %s, want %d with %s", code, body, test.code, test.want)
			}
			if len(body) > 2000 {
				t.Errorf("an answer of %d bytes", len(body))
			}
		})
	}
	if submitted, _, _ := s.node.Counts(); submitted != 0 {
		t.Errorf("%d operations reached the node", submitted)
	}
}

func TestBugIsInternal(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.node.Panic("secret inside")
	code, _, body := s.post("/v1/admission:acquire", `{"charges":[{"limit":"a","dimension":"requests","amount":"1"}]}`)
	if code != 500 || !strings.Contains(body, "correlation_id") || strings.Contains(body, "secret") {
		t.Errorf("%d %s", code, body)
	}
}

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	code, _, body := s.do(request{method: "GET", path: "/metrics"})
	if code != 200 || !strings.Contains(body, "quorlease_leases 3") {
		t.Errorf("%d %s", code, body)
	}
}

// One that has spoken keeps its place; the next one pushes out whoever has not,
// and is closed where there is nobody like that.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := start(t, func(_ *server.Config, c *httpapi.Config) { c.ConnectionsMax = 2 })
	first := s.connect()
	speak(t, first)
	second := s.connect()
	third := s.connect()
	expectClosed(t, "the silent second", second)
	speak(t, third)
	expectClosed(t, "the fourth", s.connect())
	speak(t, first)
}

// G10: as many connections as there may be, which say nothing or do not end
// their headers, keep nobody out.
func TestG10SilentConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	const most = 8
	s := start(t, func(_ *server.Config, c *httpapi.Config) { c.ConnectionsMax = most })
	for i := range 3 * most {
		if c := s.connect(); i%2 == 0 {
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\n"))
		}
	}
	for range most {
		speak(t, s.connect())
	}
}

func (s *site) connect() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// speak makes one request over c, which stays open.
func speak(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("answered %d", resp.StatusCode)
	}
}

func expectClosed(t *testing.T, which string, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s is left hanging: %v", which, err)
	}
}

// The request line and the headers are at most 16 KiB together, to the byte.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const before, after = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", "\r\n\r\n"
	for _, test := range []struct {
		size, code int
	}{{16 << 10, 200}, {16<<10 + 1, 431}} {
		c := s.connect()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Write([]byte(before + strings.Repeat("x", test.size-len(before)-len(after)) + after))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%d bytes: %v", test.size, err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.code {
			t.Errorf("%d bytes of headers: %d, want %d", test.size, resp.StatusCode, test.code)
		}
	}
}

// Events come as they happen, with an id to go on from, and the stream says why
// it ends.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.node.Ring.Publish(events.Event{
		Index: 7, Kind: events.LimitChanged, Severity: events.Info, Limit: "<b>", Text: "one",
	})
	lines := s.watch("/v1/events?from_index=0", nil)
	expect(t, lines, ": connected", "", "id: 7", "event: LimitChanged",
		`data: {"index":"7","time":"2026-10-22T08:30:00Z","kind":"LimitChanged","severity":"INFO",`+
			`"limit":"<b>","client":"","value":"","text":"one"}`, "")
	s.node.Ring.Publish(events.Event{Kind: events.LeaderChanged, Severity: events.Info})
	expect(t, lines, "id: 7", "event: LeaderChanged", "*", "")

	resumed := s.watch("/v1/events", map[string]string{"Last-Event-ID": "7"})
	expect(t, resumed, ": connected", "", "id: 7", "event: LimitChanged", "*", "", "id: 7", "event: LeaderChanged")
	code, header, past := s.do(request{method: "GET", path: "/v1/events?from_index=0&follow=false"})
	if code != 200 || header.Get("Content-Type") != "text/event-stream" || strings.Count(past, "data: ") != 2 {
		t.Errorf("the past: %d %s", code, past)
	}
	s.api.Drain()
	expect(t, lines, "event: error", "*SHUTTING_DOWN", "")
}

// watch opens a stream and returns its lines.
func (s *site) watch(path string, headers map[string]string) *bufio.Scanner {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cancel()
		resp.Body.Close()
	})
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d", path, resp.StatusCode)
	}
	return bufio.NewScanner(resp.Body)
}

// expect reads lines. One that begins with a star matches what contains the rest.
func expect(t *testing.T, lines *bufio.Scanner, want ...string) {
	t.Helper()
	for _, w := range want {
		if !lines.Scan() {
			t.Fatalf("the stream ended before %q: %v", w, lines.Err())
		}
		part, loose := strings.CutPrefix(w, "*")
		if got := lines.Text(); got != w && (!loose || !strings.Contains(got, part)) {
			t.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}
