package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
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

// TestReloadWhileAnswered: what the account before hears of its money is not of the new one.
func TestReloadWhileAnswered(t *testing.T) {
	limited(t, "", nil, func(t *testing.T, w *world) {
		late := make(chan struct{})
		w.answer = func(r *http.Request) *http.Response {
			if r.URL.Host == "other.example" {
				return fine(r)
			}
			<-late
			return says(http.StatusTooManyRequests, `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`)
		}
		var asking sync.WaitGroup
		asking.Go(func() { w.ask(t.Context(), prompt("hi")) })
		pass(time.Second)
		if err := w.Reload(elsewhere(t, "gpt")); err != nil {
			t.Fatal(err)
		}
		close(late)
		asking.Wait()
		pass(time.Minute)
		if got := w.ask(t.Context(), prompt("ho")); got.Code != http.StatusOK {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

// TestReloadParts: what was said or begun under old settings has no say under new ones.
func TestReloadParts(t *testing.T) {
	t.Run("another_rule_begins_with_a_full_balance", func(t *testing.T) {
		dear := retry.TokenRule{Cap: 500, Cost: 500, Refund: 1}
		bubble(t, func(c *gateway.Config) { c.RetryTokens = dear }, func(t *testing.T, w *world) {
			w.answer = busy("1")
			w.ask(t.Context(), prompt("hi"))
			next := elsewhere(t, "gpt")
			next.RetryTokens = retry.TokenRule{Cap: 5, Cost: 5, Refund: 1}
			if err := w.Reload(next); err != nil {
				t.Fatal(err)
			}
			w.hits.Store(0)
			w.ask(t.Context(), prompt("ho"))
			if n := w.hits.Load(); n != 2 {
				t.Errorf("%d tries, want one and the one that the new rule pays for", n)
			}
		})
	})
	t.Run("another_account_has_money", func(t *testing.T) {
		limited(t, "", nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response {
				return says(http.StatusTooManyRequests, `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`)
			}
			capped := func(name string, want int64) {
				t.Helper()
				w.hits.Store(0)
				w.ask(t.Context(), prompt("hi"))
				pass(time.Minute)
				w.ask(t.Context(), prompt("hi"))
				if n := w.hits.Load(); n != want {
					t.Errorf("%s: %d were sent, want %d", name, n, want)
				}
			}
			capped("at first", 1)
			next := elsewhere(t, "gpt")
			for _, step := range []struct {
				name string
				want int64
			}{{"another key", 1}, {"the same", 0}} {
				if err := w.Reload(next); err != nil {
					t.Fatal(err)
				}
				capped(step.name, step.want)
			}
			if err := w.Reload(elsewhere(t, "other")); err != nil {
				t.Fatal(err)
			}
			if n := w.Stats().Told.Capped; n != 0 {
				t.Errorf("%d of what is gone have no money", n)
			}
		})
	})
	t.Run("nobody_new_gets_an_old_answer", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = once(busy("2"), fine)
			var asking sync.WaitGroup
			asking.Go(func() { w.ask(t.Context(), prompt("hi")) })
			synctest.Wait()
			pass(time.Second)
			if err := w.Reload(elsewhere(t, "gpt")); err != nil {
				t.Fatal(err)
			}
			w.ask(t.Context(), prompt("hi"))
			asking.Wait()
			if n := w.Stats().Shared.Coalesced; n != 0 || w.hits.Load() != 3 {
				t.Errorf("%d shared an answer, %d were sent", n, w.hits.Load())
			}
		})
	})
	t.Run("a_class_is_shed_as_it_was_when_the_call_began", func(t *testing.T) {
		long := []gateway.Class{{MaxWait: time.Hour}}
		bubble(t, func(c *gateway.Config) { c.Classes = long }, func(t *testing.T, w *world) {
			w.answer = busy("1")
			w.ask(t.Context(), prompt("hi"))
			body, sent := io.Pipe()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+chat, body)
			r.RemoteAddr = "127.0.0.1:1234"
			r.Header.Set("X-Client-Id", "a")
			var asking sync.WaitGroup
			began := time.Now()
			asking.Go(func() {
				if got := w.serve(r); got.Code != refuse.CircuitOpen.Status() || time.Since(began) > time.Second {
					t.Errorf("%d after %s: %s", got.Code, time.Since(began), got.Body)
				}
			})
			synctest.Wait()
			next := elsewhere(t, "gpt")
			next.Classes = []gateway.Class{{MaxWait: time.Hour, Closed: circuit.Defer}}
			if err := w.Reload(next); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(sent, prompt("hi")); err != nil {
				t.Fatal(err)
			}
			sent.Close()
			asking.Wait()
		})
	})
}
