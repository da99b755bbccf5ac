package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// once answers the first request in one way and all others in another.
func once(first, then func(*http.Request) *http.Response) func(*http.Request) *http.Response {
	var asked atomic.Int64
	return func(r *http.Request) *http.Response {
		if asked.Add(1) == 1 {
			return first(r)
		}
		return then(r)
	}
}

// TestWaits: who waits holds nothing, and is looked at anew.
func TestWaits(t *testing.T) {
	t.Run("S2-25_nothing_is_held_during_a_pause", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = once(busy("5"), fine)
			var joined sync.WaitGroup
			joined.Go(func() {
				if got := w.ask(t.Context(), prompt("hi")); got.Code != http.StatusOK {
					t.Errorf("%d %s", got.Code, got.Body)
				}
			})
			pass(2 * time.Second)
			if _, leases := w.level("deployment", "gpt"); leases != 0 || w.hits.Load() != 1 {
				t.Errorf("%d leases are open while it waits, after %d tries", leases, w.hits.Load())
			}
			joined.Wait()
		})
	})
	t.Run("S2-24_what_opens_meanwhile_counts", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			// Nothing that the authority would close for what the provider says.
			w.limits(strings.Replace(limits, "target: 90%,", "", 1))
			w.answer = busy("5")
			var joined sync.WaitGroup
			// Each of these would come again twice.
			for _, text := range []string{"a", "b", "c", "d", "e", "f"} {
				joined.Go(func() { w.ask(t.Context(), prompt(text)) })
				pass(10 * time.Millisecond)
			}
			joined.Wait()
			// The third no of one call opens the circuit: of the others none is sent after that.
			if n := w.hits.Load(); n < 6+2 || n > 6+6+1 {
				t.Errorf("%d were sent", n)
			}
			if s := w.Stats(); s.Circuits.Opened != 1 || s.Refusals[refuse.CircuitOpen] < 4 {
				t.Errorf("%+v, %v", s.Circuits, s.Refusals)
			}
		})
	})
	t.Run("S2-15_a_batch_waits_until_it_closes", func(t *testing.T) {
		batch := func(c *gateway.Config) {
			c.Classes = []gateway.Class{
				{MaxWait: 10 * time.Second},
				{Name: "batch", MaxWait: 10 * time.Minute, Closed: circuit.Defer},
			}
			book, err := who.New(who.Config{Loopback: true, Classes: []string{"batch"}})
			if err != nil {
				t.Fatal(err)
			}
			c.Who = book
		}
		bubble(t, batch, func(t *testing.T, w *world) {
			w.limits(strings.Replace(limits, "target: 90%,", "classes: {live: {share: 60%}, batch: {share: 40%}},", 1))
			w.answer = busy("1")
			w.ask(t.Context(), prompt("hi"))
			w.answer = fine
			began := time.Now()
			got := w.ask(t.Context(), prompt("later"), "X-Quorlease-Class", "batch", "X-Retry-Attempt", "1")
			if took := time.Since(began); got.Code != http.StatusOK || took < 25*time.Second || took > 2*time.Minute {
				t.Errorf("%d after %s: %s", got.Code, took, got.Body)
			}
			if n := w.hits.Load(); n != 4 {
				t.Errorf("%d were sent", n)
			}
		})
	})
	t.Run("S2-11_who_asked_first_may_leave", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = once(busy("3"), fine)
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			var joined sync.WaitGroup
			joined.Go(func() { w.ask(ctx, prompt("same")) })
			pass(100 * time.Millisecond)
			got := w.ask(t.Context(), prompt("same"))
			joined.Wait()
			if got.Code != http.StatusOK || w.hits.Load() != 2 {
				t.Errorf("%d %s after %d tries", got.Code, got.Body, w.hits.Load())
			}
			for _, s := range w.all() {
				if s.body != prompt("same") {
					t.Errorf("sent %q", s.body)
				}
			}
			pass(time.Second)
			if held := w.Stats().Held; held != 0 {
				t.Errorf("%d bytes are held", held)
			}
		})
	})
}

// TestPatience: what a class waits is spent by waiting.
func TestPatience(t *testing.T) {
	t.Run("who_waits_for_nothing_is_sent_once", func(t *testing.T) {
		bubble(t, func(c *gateway.Config) {
			c.Classes, c.Draw = []gateway.Class{{MaxWait: -1}}, func(int64) int64 { return 0 }
		}, func(t *testing.T, w *world) {
			// It asks for no wait at all, and chance adds none.
			w.answer = busy("0")
			if got := w.ask(t.Context(), prompt("hi")); got.Code != http.StatusTooManyRequests || w.hits.Load() != 1 {
				t.Errorf("%d after %d tries", got.Code, w.hits.Load())
			}
		})
	})
	t.Run("S3-18_a_slow_provider_is_no_waiting", func(t *testing.T) {
		hasty := func(c *gateway.Config) { c.Classes = []gateway.Class{{MaxWait: 8 * time.Second}} }
		bubble(t, hasty, func(t *testing.T, w *world) {
			slow := func(*http.Request) *http.Response {
				pass(20 * time.Second)
				return busy("3")(nil)
			}
			w.answer = once(slow, fine)
			if got := w.ask(t.Context(), prompt("hi")); got.Code != http.StatusOK || w.hits.Load() != 2 {
				t.Errorf("%d %s after %d tries", got.Code, got.Body, w.hits.Load())
			}
			w.answer = busy("5")
			if got := w.ask(t.Context(), prompt("hu")); got.Code == http.StatusOK || w.hits.Load() != 4 {
				t.Errorf("%d %s after %d tries", got.Code, got.Body, w.hits.Load())
			}
		})
	})
}

// TestPaths: what is forwarded is what was looked at.
func TestPaths(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		for _, path := range []string{
			"/v1//chat/completions", "/v1/./chat/completions", "/x/../v1/chat/completions", "/v1/chat/completions/.",
			"/../x", "/v1/%2e%2e/x", "//v1/chat/completions", `/v1\chat/completions`,
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/",
				strings.NewReader(prompt("x")))
			r.RemoteAddr = "127.0.0.1:1"
			r.Header.Set("X-Client-Id", "a")
			var err error
			if r.URL, err = r.URL.Parse("http://localhost/"); err != nil {
				t.Fatal(err)
			}
			r.URL.Path = path
			if strings.Contains(path, "%") {
				r.URL.Path, r.URL.RawPath = strings.ReplaceAll(path, "%2e", "."), path
			}
			if got := w.serve(r); got.Code != refuse.Malformed.Status() {
				t.Errorf("%s: %d", path, got.Code)
			}
		}
		if n := w.hits.Load(); n != 0 {
			t.Errorf("%d reached the provider", n)
		}
	})
}

// TestClosed: a gateway that is closed refuses, and has ended what it was doing.
func TestClosed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		w.answer = busy("20")
		var joined sync.WaitGroup
		for _, share := range []string{"", "false"} {
			joined.Go(func() {
				if got := w.ask(t.Context(), prompt("hi"+share), "X-Coalesce", share); got.Code == http.StatusOK {
					t.Errorf("%d", got.Code)
				}
			})
		}
		pass(time.Second)
		if err := w.Gateway.Close(); err != nil {
			t.Error(err)
		}
		joined.Wait()
		if got := w.ask(t.Context(), prompt("more")); got.Code != refuse.Capacity.Status() {
			t.Errorf("%d", got.Code)
		}
		if _, leases := w.level("deployment", "gpt"); leases != 0 {
			t.Errorf("%d leases are open", leases)
		}
	})
}
