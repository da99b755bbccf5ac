package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limits = `
limits:
- {name: deployment, match: {deployment: "*"}, per: [deployment], target: 90%,
   rate: {requests: 1000/s, tokens: 1_000_000/s}, burst: {requests: 1000, tokens: 1_000_000}}
- {name: tenant, match: {tenant: "*"}, per: [tenant], rate: {tokens: 100_000/s}, burst: {tokens: 100_000}}
retry_budgets: [{name: everybody, match: {client: "*"}}]
`

// world is a gateway, the nodes that it asks, and the provider behind it.
type world struct {
	*clienttest.Cluster
	*gateway.Gateway
	t      testing.TB
	client *client.Client
	log    bytes.Buffer

	// answer is the provider.
	answer func(*http.Request) *http.Response
	hits   atomic.Int64
	mu     sync.Mutex
	seen   []seen // guarded by mu
}

// seen is a request that reached the provider.
type seen struct {
	at     time.Time
	header http.Header
	path   string
	body   string
}

// RoundTrip is the provider.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	w.hits.Add(1)
	w.mu.Lock()
	w.seen = append(w.seen, seen{time.Now(), r.Header, r.URL.String(), string(body)})
	w.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := w.answer(r)
	answer.Request = r
	return answer, nil
}

// all is what has reached the provider.
func (w *world) all() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]seen(nil), w.seen...)
}

// says is an answer.
func says(status int, body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{
		StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// fine is what a model answers.
func fine(*http.Request) *http.Response {
	return says(http.StatusOK, `{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":`+
		`{"role":"assistant","content":"hello"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":20,"completion_tokens":7,"total_tokens":27}}`)
}

// busy is a provider that says no, and for how long.
func busy(wait string) func(*http.Request) *http.Response {
	return func(*http.Request) *http.Response {
		return says(http.StatusTooManyRequests,
			`{"error":{"message":"Rate limit reached for gpt in organization o on tokens per min (TPM)",`+
				`"type":"tokens","code":"rate_limit_exceeded"}}`, "Retry-After", wait)
	}
}

// bubble runs f in virtual time, with a gateway in front of one deployment of OpenAI's.
func bubble(t *testing.T, change func(*gateway.Config), f func(t *testing.T, w *world)) {
	t.Helper()
	limited(t, limits, change, f)
}

// limited is bubble with other limits, or none.
func limited(t *testing.T, text string, change func(*gateway.Config), f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, text, change)
		defer w.end()
		f(t, w)
	})
}

// open makes the world of bubble, whatever the time. It has to be ended.
func open(t testing.TB, text string, change func(*gateway.Config)) *world {
	t.Helper()
	w := &world{t: t, answer: fine}
	var err error
	if w.Cluster, err = clienttest.New(3); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		w.limits(text)
	}
	if w.client, err = client.New(client.Config{
		Endpoints: w.Endpoints(), Client: "gateway", Dial: w.Dial,
		Alerts: []alert.Sink{alert.Func(func(alert.Alert) {})},
	}); err != nil {
		t.Fatal(err)
	}
	book, err := who.New(who.Config{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	openAI, err := provider.Named(provider.NameOpenAI)
	if err != nil {
		t.Fatal(err)
	}
	config := gateway.Config{
		Authority: w.client, Who: book, Transport: w,
		Deployments: []gateway.Deployment{{
			Name: "gpt", Provider: openAI, Upstream: &url.URL{Scheme: "https", Host: "api.example"},
		}},
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	if change != nil {
		change(&config)
	}
	if w.Gateway, err = gateway.New(config); err != nil {
		t.Fatal(err)
	}
	return w
}

// end closes everything, in the order in which it is asked.
func (w *world) end() {
	for _, one := range []io.Closer{w.Gateway, w.client} {
		if err := one.Close(); err != nil {
			w.t.Error(err)
		}
	}
	w.Cluster.Close()
}

const chat = "/v1/chat/completions"

// prompt is a chat about something.
func prompt(text string) string {
	return `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"` + text + `"}]}`
}

// ask sends a request through the gateway.
func (w *world) ask(ctx context.Context, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+chat, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Client-Id", "a")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return w.serve(r)
}

// limits puts others in force.
func (w *world) limits(text string) {
	w.t.Helper()
	if err := w.LimitsFile(text); err != nil {
		w.t.Fatal(err)
	}
}

// serve does as a server would: whoever's answer can't be finished gets aborted for a status.
func (w *world) serve(r *http.Request) (recorder *httptest.ResponseRecorder) {
	recorder = httptest.NewRecorder()
	defer func() {
		if cause := recover(); cause != nil {
			if cause != http.ErrAbortHandler { //nolint:errorlint // it is this value
				panic(cause)
			}
			recorder.Code = aborted
		}
	}()
	w.ServeHTTP(recorder, r)
	return recorder
}

const aborted = -1

// warm makes calls until they are paid from what the gateway holds, as they are mostly.
func (w *world) warm() {
	w.t.Helper()
	for i := range 100 {
		before := w.Stats().Charges.Permits
		w.ask(w.t.Context(), prompt(fmt.Sprint("warm ", i)))
		pass(20 * time.Millisecond)
		if w.Stats().Charges.Permits > before {
			w.hits.Store(0)
			return
		}
	}
	w.t.Fatalf("a hundred calls, and nothing is held: %+v", w.Stats().Charges)
}

// level is what a bucket has of its dimensions, and how many leases are open.
func (w *world) level(limit, key string) (levels map[string]int64, leases int) {
	w.t.Helper()
	levels = map[string]int64{}
	w.View(func(m *fsm.Machine, now bucket.Instant) {
		found, err := m.Inspect(now, limit, key)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, b := range found.Buckets {
			levels[b.Dimension] = b.Level - b.Debt
		}
		leases = found.OpenLeases
	})
	return levels, leases
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }
