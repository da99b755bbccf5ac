package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/client/gateway"
)

// get sends what is no work for a model.
func (w *world) get(ctx context.Context, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("X-Client-Id", "a")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.serve(r)
}

// TestHostileAnswers: what a provider answers to what is no work leads no client away, and
// tells it nothing of the gateway's key and account.
func TestHostileAnswers(t *testing.T) {
	own := func(c *gateway.Config) { c.Deployments[0].Key = "sk-own" }
	for _, row := range []struct {
		name   string
		answer *http.Response
		want   int
	}{
		{"a_redirect", says(http.StatusFound, "", "Location", "https://elsewhere.example/"), http.StatusServiceUnavailable},
		{"a_wrong_key", says(http.StatusUnauthorized, `{"error":"sk-own is wrong"}`), http.StatusServiceUnavailable},
		{"unchanged", says(http.StatusNotModified, ""), http.StatusNotModified},
		{
			"its_account", says(http.StatusOK, "{}", "Anthropic-Organization-Id", "sk-own", "Set-Cookie", "sk-own"),
			http.StatusOK,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, own, func(t *testing.T, w *world) {
				w.answer = func(*http.Request) *http.Response { return row.answer }
				got := w.get(t.Context(), "/v1/models")
				if got.Code != row.want || got.Header().Get("Location") != "" {
					t.Errorf("%d %v", got.Code, got.Header())
				}
				said := got.Body.String()
				for _, values := range got.Header() {
					said += strings.Join(values, " ")
				}
				if strings.Contains(said, "sk-own") {
					t.Errorf("it is told %s", said)
				}
			})
		})
	}
}

// TestHostileHeaders: a client's headers do not reach behind the gateway where they are not
// meant to, nor take away what the gateway says.
func TestHostileHeaders(t *testing.T) {
	own := func(c *gateway.Config) {
		c.Deployments[0].Key = "sk-own"
		c.Deployments[0].Header = http.Header{"Openai-Project": {"ours"}}
	}
	bubble(t, own, func(t *testing.T, w *world) {
		headers := []string{
			"Connection", "Authorization, openai-project, x-hop", "X-Hop", "1", "X-Forwarded-For", "10.0.0.1",
			"X-Real-Ip", "10.0.0.1", "Via", "1.1 inside", "X-Api-Key", "theirs", "Openai-Project", "theirs", "Cookie", "a=b",
			"Transfer-Encoding", "chunked", "Upgrade", "websocket", "X-Forwarded-Port", "1",
		}
		w.ask(t.Context(), prompt("hi"), headers...)
		w.answer = func(*http.Request) *http.Response { return says(http.StatusOK, "{}") }
		w.get(t.Context(), "/v1/models", headers...)
		for _, s := range w.all() {
			for _, name := range []string{
				"Connection", "X-Hop", "X-Forwarded-For", "X-Forwarded-Port", "X-Real-Ip", "Via", "X-Api-Key", "Cookie",
				"Transfer-Encoding", "Upgrade", "X-Client-Id",
			} {
				if got, there := s.header[name]; there {
					t.Errorf("%s: %s: %q reached the provider", s.path, name, got)
				}
			}
			if s.header.Get("Authorization") != "Bearer sk-own" || s.header.Get("Openai-Project") != "ours" {
				t.Errorf("%s: %v", s.path, s.header)
			}
		}
		if n := len(w.all()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}
