package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/client/gateway"
)

// status is a client that looks at nothing but the status of its answer.
type status struct {
	header http.Header
	code   int
}

// Header, WriteHeader, Write and Flush are those of a connection.
func (s *status) Header() http.Header         { return s.header }
func (s *status) WriteHeader(code int)        { s.code = code }
func (s *status) Write(p []byte) (int, error) { return len(p), nil }
func (s *status) Flush()                      {}

// forgetful is a provider that remembers nothing.
type forgetful func(*http.Request) *http.Response

// RoundTrip answers.
func (f forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	answer := f(r)
	answer.Request = r
	return answer, nil
}

// BenchmarkServe is one request with all that the gateway does for it, and no network.
func BenchmarkServe(b *testing.B) {
	const roomy = `
limits:
- {name: tenant, match: {tenant: "*"}, per: [tenant], rate: {tokens: 1_000_000_000/s}, burst: {tokens: 1_000_000_000}}
retry_budgets: [{name: everybody, match: {client: "*"}}]
`
	stream := func(*http.Request) *http.Response { return events(chunk("a"), chunk("b"), usageChunk, doneChunk) }
	for _, row := range []struct {
		name, body string
		answer     forgetful
		header     http.Header
		want       int
	}{
		{"alone", prompt("hi"), fine, http.Header{"X-Coalesce": {"false"}}, http.StatusOK},
		{"shared", prompt("hi"), fine, http.Header{}, http.StatusOK},
		{"streamed", streaming("hi"), stream, http.Header{"X-Coalesce": {"false"}}, http.StatusOK},
		{"refused", prompt("hi"), fine, http.Header{"X-Retry-Attempt": {"9"}}, http.StatusTooManyRequests},
	} {
		b.Run(row.name, func(b *testing.B) {
			w := open(b, roomy, func(c *gateway.Config) { c.Transport = row.answer })
			defer w.end()
			w.warm()
			row.header["X-Client-Id"], row.header["Content-Type"] = []string{"a"}, []string{"application/json"}
			asked := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "http://localhost"+chat, http.NoBody)
			asked.RemoteAddr, asked.Header = "127.0.0.1:1234", nil
			b.ReportAllocs()
			for b.Loop() {
				r := asked.Clone(b.Context())
				r.Body = io.NopCloser(strings.NewReader(row.body))
				r.Header = row.header
				to := &status{header: http.Header{}}
				if w.ServeHTTP(to, r); to.code != row.want {
					b.Fatalf("%d, want %d: %v", to.code, row.want, to.header)
				}
			}
		})
	}
}
