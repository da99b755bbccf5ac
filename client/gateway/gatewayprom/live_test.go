package gatewayprom

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// upstream is a provider that answers as it is told to.
type upstream func(*http.Request) *http.Response

func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := u(r)
	answer.Request = r
	return answer, nil
}

// done and throttled are answers of a provider.
func done() *http.Response {
	return answer(http.StatusOK, `{"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}`)
}

func throttled() *http.Response {
	r := answer(http.StatusTooManyRequests, `{"error":{"type":"tokens","code":"rate_limit_exceeded"}}`)
	r.Header.Set("Retry-After", "1")
	return r
}

func answer(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// live runs f in virtual time, with a gateway before a provider.
func live(t *testing.T, u upstream, f func(t *testing.T, g *gateway.Gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := clienttest.New(1)
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		if err := cluster.LimitsFile(`limits:
- {name: deployment, match: {deployment: "*"}, per: [deployment], rate: {requests: 100/s, tokens: 100_000/s}}
`); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(client.Config{
			Endpoints: cluster.Endpoints(), Client: "gateway", Dial: cluster.Dial,
			Alerts: []alert.Sink{alert.Func(func(alert.Alert) {})},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		book, err := who.New(who.Config{Clients: []who.Client{
			{Name: "scorer", Tenant: "red", Keys: []string{who.HashKey("secret")}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		table, err := provider.Named(provider.NameOpenAI)
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(gateway.Config{
			Authority: c, Who: book, Transport: u, Deployments: []gateway.Deployment{
				{Name: "gpt", Provider: table, Upstream: &url.URL{Scheme: "http", Host: "provider.test"}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		f(t, g)
	})
}

// ask sends a request and returns the status of its answer.
func ask(t *testing.T, g *gateway.Gateway, prompt string, header ...string) int {
	t.Helper()
	body := `{"model":"gpt-4o","messages":[{"role":"user","content":"` + prompt + `"}],"max_tokens":10}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer secret")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Code
}

// TestAGateway: what the figures say of one that works.
func TestAGateway(t *testing.T) {
	t.Parallel()
	t.Run("S1-10_S3-18_throttled_retried_exhausted_and_closed", func(t *testing.T) {
		t.Parallel()
		answers := []func() *http.Response{throttled, done, throttled, throttled, throttled}
		u := func(*http.Request) *http.Response {
			next := answers[0]
			answers = answers[1:]
			return next()
		}
		live(t, u, func(t *testing.T, g *gateway.Gateway) {
			for i, want := range []int{200, 429, 503} {
				if got := ask(t, g, string(rune('a'+i))); got != want {
					t.Errorf("request %d is answered with %d, want %d", i, got, want)
				}
			}
			want := map[string]float64{
				"requests_total{}": 3, "forwarded_total{}": 5,
				`failed_tries_total{ending="retried"}`:               3,
				`failed_tries_total{ending="exhausted"}`:             1,
				`provider_answers_total{class="none"}`:               1,
				`provider_answers_total{class="transient_rate"}`:     4,
				`refusals_total{reason="paused",status="429"}`:       1,
				`refusals_total{reason="circuit_open",status="503"}`: 1,
				"circuits_open{}": 1, "circuits_opened_total{}": 1,
				`attempts_total{source="first"}`: 3, "estimate_ratio{} count": 1, "bodies_held_bytes{}": 0,
			}
			compare(t, g, want)
			if s := g.Stats(); s.Refused != 2 {
				t.Errorf("%d refusals, want 2", s.Refused)
			}
		})
	})
	t.Run("S3-18_no_time_is_left_for_another_try", func(t *testing.T) {
		t.Parallel()
		u := func(*http.Request) *http.Response {
			r := throttled()
			r.Header.Set("Retry-After", "40")
			return r
		}
		live(t, u, func(t *testing.T, g *gateway.Gateway) {
			if got := ask(t, g, "a"); got != http.StatusTooManyRequests {
				t.Errorf("answered with %d, want 429", got)
			}
			compare(t, g, map[string]float64{
				"forwarded_total{}": 1, `failed_tries_total{ending="retried"}`: 0,
				`failed_tries_total{ending="exhausted"}`: 1, `refusals_total{reason="paused",status="429"}`: 1,
			})
		})
	})
	t.Run("S2-30_done_twice_or_once", func(t *testing.T) {
		t.Parallel()
		var hold chan struct{}
		live(t, func(*http.Request) *http.Response { <-hold; return done() }, func(t *testing.T, g *gateway.Gateway) {
			hold = make(chan struct{})
			var all sync.WaitGroup
			for _, header := range [][]string{nil, nil, {"X-Coalesce", "false"}} {
				all.Go(func() {
					if got := ask(t, g, "the same", header...); got != http.StatusOK {
						t.Errorf("answered with %d", got)
					}
				})
				synctest.Wait()
			}
			close(hold)
			all.Wait()
			compare(t, g, map[string]float64{
				"requests_total{}": 3, "forwarded_total{}": 2, "coalesced_total{}": 1,
				"duplicates_executed_total{}": 1, "duplicates_total{}": 2,
			})
		})
	})
}

// compare wants some figures of a gateway.
func compare(t *testing.T, g *gateway.Gateway, want map[string]float64) {
	t.Helper()
	all := samples(gather(t, New(g, nil)))
	got := make(map[string]float64)
	for series := range want {
		if value, ok := all[series]; ok {
			got[series] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
