package gateway_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/fsm/retry"
)

// elsewhere is another configuration, with its deployment at another address.
func elsewhere(t *testing.T, name string) gateway.Config {
	t.Helper()
	openAI, err := provider.Named(provider.NameOpenAI)
	if err != nil {
		t.Fatal(err)
	}
	book, err := who.New(who.Config{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	return gateway.Config{Who: book, Deployments: []gateway.Deployment{{
		Name: name, Provider: openAI, Upstream: &url.URL{Scheme: "https", Host: "other.example"}, Key: "new",
	}}}
}

// TestReload: what is configured changes without losing what is under way or known.
func TestReload(t *testing.T) {
	t.Run("a_call_ends_as_it_began", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = once(busy("2"), fine)
			var asking sync.WaitGroup
			asking.Go(func() {
				if got := w.ask(t.Context(), prompt("hi")); got.Code != http.StatusOK {
					t.Errorf("%d %s", got.Code, got.Body)
				}
			})
			synctest.Wait()
			pass(time.Second)
			if err := w.Reload(elsewhere(t, "gpt")); err != nil {
				t.Fatal(err)
			}
			if got := w.ask(t.Context(), prompt("ho"), "Authorization", "Bearer old"); got.Code != http.StatusOK {
				t.Errorf("%d %s", got.Code, got.Body)
			}
			asking.Wait()
			var asked []string
			for _, s := range w.all() {
				asked = append(asked, s.path+" "+s.header.Get("Authorization"))
			}
			want := "https://api.example/v1/chat/completions , https://other.example/v1/chat/completions Bearer new, " +
				"https://api.example/v1/chat/completions "
			if got := strings.Join(asked, ", "); got != want {
				t.Errorf("asked %s, want %s", got, want)
			}
		})
	})
	t.Run("what_is_wrong_changes_nothing", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			wrong := elsewhere(t, "")
			wrong.Tries = 11
			if err := w.Reload(wrong); err == nil || !strings.Contains(err.Error(), "tries: 11 is out of range 1..10") ||
				!strings.Contains(err.Error(), "deployments[0].name") {
				t.Errorf("%v", err)
			}
			w.ask(t.Context(), prompt("hi"))
			if path := w.all()[0].path; !strings.HasPrefix(path, "https://api.example/") {
				t.Errorf("asked %s", path)
			}
		})
	})
	t.Run("S3-25_retries_are_paid_from_the_same_balance", func(t *testing.T) {
		poor := retry.TokenRule{Cap: 5, Cost: 5, Refund: 1}
		bubble(t, func(c *gateway.Config) { c.RetryTokens = poor }, func(t *testing.T, w *world) {
			w.answer = busy("1")
			w.ask(t.Context(), prompt("hi"))
			next := elsewhere(t, "gpt")
			next.RetryTokens = poor
			if err := w.Reload(next); err != nil {
				t.Fatal(err)
			}
			w.hits.Store(0)
			w.ask(t.Context(), prompt("ho"))
			if n := w.hits.Load(); n != 1 {
				t.Errorf("%d tries, although nothing was left for retries", n)
			}
		})
	})
	t.Run("S2-15_what_classes_do_while_a_circuit_is_open", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = busy("1")
			w.ask(t.Context(), prompt("hi"))
			w.answer = fine
			if got := w.ask(t.Context(), prompt("hi")); got.Code != refuse.CircuitOpen.Status() {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			next := elsewhere(t, "gpt")
			next.Classes = []gateway.Class{{MaxWait: time.Hour, Closed: circuit.Defer}}
			if err := w.Reload(next); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if got := w.ask(t.Context(), prompt("hi")); got.Code != http.StatusOK || time.Since(began) < 10*time.Second {
				t.Errorf("%d after %s: %s", got.Code, time.Since(began), got.Body)
			}
		})
	})
}
