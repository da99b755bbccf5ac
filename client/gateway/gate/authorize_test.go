package gate_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// question asks whether a request may pass.
func question(ctx context.Context, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}

// TestAuthorize: a proxy that asks gets a yes or a no that it understands.
func TestAuthorize(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		nginx, others := w.gate.AuthRequest(), w.gate.Authorize()
		for _, row := range []struct {
			name    string
			handler http.Handler
			headers []string
			want    int
			meant   string
		}{
			{"passes", nginx, []string{"Authorization", asNotes, "X-Original-Method", "POST", "X-Original-Uri", "/a"}, 200, ""},
			{"no headers of the proxy's", nginx, []string{"Authorization", asNotes}, 200, ""},
			{"nobody", nginx, nil, 401, "401"},
			{"two names", nginx, []string{"Authorization", asNotes, "X-Client-Id", "a", "X-Client-Id", "b"}, 403, "400"},
			{"another's name", others, []string{"Authorization", asNotes, "X-Client-Id", "nightly"}, 403, ""},
			{
				"what is smuggled", nginx, []string{
					"Authorization", asNotes, "X-Original-Uri", "/a\r\nX-Client-Id: nightly", "X-Original-Uri", "/b",
					"X-Original-Method", "GET /", "Content-Length", "7", "Transfer-Encoding", "chunked", "Upgrade", "websocket",
				}, 200, "",
			},
			{"a long URI", others, []string{"Authorization", asNotes, "X-Forwarded-Uri", strings.Repeat("/a", 20_000)}, 200, ""},
			{
				"a page's origin", others,
				[]string{"Authorization", asNotes, "Origin", "https://a.example", "X-Forwarded-Method", "POST"},
				200, "",
			},
		} {
			got := question(t.Context(), row.handler, "/", row.headers...)
			if got.Code != row.want || got.Header().Get("X-Quorlease-Status") != row.meant ||
				row.want == http.StatusOK && (got.Header().Get("X-Retry-Attempt") != "0" || got.Body.Len() > 0) {
				t.Errorf("%s: %d %v %s, want %d for %q", row.name, got.Code, got.Header(), got.Body, row.want, row.meant)
			}
		}
	})
}

// TestAuthorizeCharges: it is charged when it is asked about, and holds nothing.
func TestAuthorizeCharges(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		ask := func(h http.Handler, model, uri string) *httptest.ResponseRecorder {
			return question(t.Context(), h, "/", "Authorization", asNotes, "Model", model,
				"X-Original-Method", "GET", "X-Original-Uri", uri, "X-Forwarded-Uri", uri)
		}
		for range 3 {
			if got := ask(w.gate.Authorize(), "slots", "/s"); got.Code != http.StatusOK {
				t.Errorf("a slot is held: %d %s", got.Code, got.Body)
			}
			pass(100 * time.Millisecond)
		}
		ask(w.gate.AuthRequest(), "narrow", "/1")
		no := ask(w.gate.AuthRequest(), "narrow", "/2")
		whole := ask(w.gate.Authorize(), "narrow", "/3")
		if no.Code != http.StatusForbidden || no.Header().Get("X-Quorlease-Status") != "429" ||
			no.Header().Get("Retry-After") == "" || whole.Code != http.StatusTooManyRequests {
			t.Errorf("%d %v, and %d %v", no.Code, no.Header(), whole.Code, whole.Header())
		}
		// The same that was refused is a retry of it.
		pass(time.Minute)
		again := ask(w.gate.AuthRequest(), "narrow", "/2")
		if again.Code != http.StatusOK || again.Header().Get("X-Retry-Attempt") != "1" {
			t.Errorf("%d %v", again.Code, again.Header())
		}
		if got := w.gate.Stats(); got.Refused != 2 || got.Passed != 5 {
			t.Errorf("%+v", got)
		}
	})
}
