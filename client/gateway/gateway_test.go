package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// TestForwards: what passes reaches the provider as it was sent, and the client gets what
// came back; what was used is what is charged.
func TestForwards(t *testing.T) {
	t.Run("S2-09_S1-07_charged_before_and_settled_after", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			before, _ := w.level("tenant", "a")
			got := w.ask(t.Context(), prompt("hi"), "Authorization", "Bearer mine", "X-Trace", "7")
			if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "hello") {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			one := w.all()[0]
			if one.path != "https://api.example"+chat || one.body != prompt("hi") ||
				one.header.Get("Authorization") != "Bearer mine" || one.header.Get("X-Trace") != "7" ||
				one.header.Get("X-Client-Id") != "" {
				t.Errorf("the provider got %+v", one)
			}
			pass(100 * time.Millisecond)
			after, leases := w.level("tenant", "a")
			// OpenAI counts the larger of both, which is what was asked for.
			if spent := before["tokens"] - after["tokens"]; spent < 0 || spent > 100 || leases != 0 {
				t.Errorf("%d tokens are charged, %d leases are open", spent, leases)
			}
		})
	})
	t.Run("a_list_of_models_is_one_request", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response { return says(http.StatusOK, `{"data":[]}`) }
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/v1/models?limit=3", nil)
			r.RemoteAddr = "127.0.0.1:1"
			r.Header.Set("X-Client-Id", "a")
			got := httptest.NewRecorder()
			w.ServeHTTP(got, r)
			if got.Code != http.StatusOK || got.Body.String() != `{"data":[]}` ||
				w.all()[0].path != "https://api.example/v1/models?limit=3" {
				t.Errorf("%d %s of %+v", got.Code, got.Body, w.all())
			}
		})
	})
	t.Run("S2-21_other_errors_pass_at_once", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response { return says(http.StatusInternalServerError, `{"error":"x"}`) }
			began := time.Now()
			got := w.ask(t.Context(), prompt("hi"))
			if got.Code != http.StatusInternalServerError || got.Body.String() != `{"error":"x"}` || w.hits.Load() != 1 {
				t.Errorf("%d %s after %d tries", got.Code, got.Body, w.hits.Load())
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %s", took)
			}
		})
	})
}

// TestUnlimited: what no limit fits passes, once it was said twice, and is counted.
func TestUnlimited(t *testing.T) {
	t.Run("S2-09_a_node_that_has_not_heard_of_them_yet", func(t *testing.T) {
		limited(t, "", nil, func(t *testing.T, w *world) {
			var joined sync.WaitGroup
			defer joined.Wait()
			joined.Go(func() {
				pass(50 * time.Millisecond)
				if err := w.LimitsFile(limits); err != nil {
					t.Error(err)
				}
			})
			if got := w.ask(t.Context(), prompt("hi")); got.Code != http.StatusOK || w.Stats().Unlimited != 0 {
				t.Errorf("%d, %d were not charged", got.Code, w.Stats().Unlimited)
			}
		})
	})
	t.Run("there_is_none", func(t *testing.T) {
		limited(t, "", nil, func(t *testing.T, w *world) {
			began := time.Now()
			for i := range 5 {
				if got := w.ask(t.Context(), prompt(fmt.Sprint(i))); got.Code != http.StatusOK {
					t.Errorf("%d %s", got.Code, got.Body)
				}
			}
			if took := time.Since(began); w.Stats().Unlimited != 5 || took > 200*time.Millisecond ||
				!strings.Contains(w.log.String(), "no limit fits") {
				t.Errorf("%d in %s: %s", w.Stats().Unlimited, took, w.log.String())
			}
		})
	})
}

// TestIdentity: who does not say who asks is neither forwarded nor metered.
func TestIdentity(t *testing.T) {
	t.Run("S1-44_without_a_name", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			before, _ := w.level("deployment", "gpt")
			got := w.ask(t.Context(), prompt("hi"), "X-Client-Id", "", "Accept", "application/problem+json")
			var problem struct {
				Status int    `json:"status"`
				Reason string `json:"reason"`
			}
			if err := json.Unmarshal(got.Body.Bytes(), &problem); err != nil || got.Code != http.StatusUnauthorized ||
				problem.Status != http.StatusUnauthorized || problem.Reason != "UNIDENTIFIED" {
				t.Errorf("%d %s, %v", got.Code, got.Body, err)
			}
			pass(time.Second)
			if after, leases := w.level("deployment", "gpt"); w.hits.Load() != 0 || leases != 0 ||
				after["tokens"] < before["tokens"] {
				t.Errorf("%d were forwarded, %d leases, %v of %v", w.hits.Load(), leases, after, before)
			}
		})
	})
}

// storm is a client that tries again at once, for ever, and says nothing of it.
func (w *world) storm(
	workers, calls int, body func(i int) string,
) (codes map[int]int, last *httptest.ResponseRecorder) {
	codes = map[int]int{}
	var mu sync.Mutex
	var joined sync.WaitGroup
	next := 0
	for range workers {
		joined.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= calls {
					return
				}
				got := w.ask(w.t.Context(), body(i))
				mu.Lock()
				codes[got.Code]++
				if got.Header().Get("X-Retry-Budget-Exceeded") != "" {
					last = got
				}
				mu.Unlock()
				pass(time.Millisecond)
			}
		})
	}
	joined.Wait()
	return codes, last
}

// TestStorm: who tries again and again, without a word of it in any header, is stopped here.
func TestStorm(t *testing.T) {
	work := func(i int) string { return prompt(fmt.Sprint("work ", i%33)) }
	t.Run("S1-14_1500_calls_of_33_workers", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = busy("1")
			codes, _ := w.storm(33, 1500, work)
			if n := w.hits.Load(); n > 200 || codes[http.StatusOK] > 0 {
				t.Errorf("%d of 1500 calls reached the provider: %v", n, codes)
			}
		})
	})
	t.Run("S1-23_S1-25_the_budget_alone", func(t *testing.T) {
		open := func(c *gateway.Config) {
			c.Circuits = circuit.Config{CallThrottles: -1, FractionBP: -1}
			c.Tries = 1
		}
		bubble(t, open, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response { return says(http.StatusTooManyRequests, `{"error":{}}`) }
			codes, last := w.storm(33, 1500, work)
			if n := w.hits.Load(); n > 200 {
				t.Errorf("%d of 1500 calls reached the provider: %v", n, codes)
			}
			if last == nil {
				t.Fatalf("no call was refused for the budget: %v", codes)
			}
			for name, want := range map[string]string{
				"Retry-After": "60", "Retry-After-Ms": "60000", "X-Should-Retry": "false", "X-Retry-Budget-Exceeded": "true",
			} {
				if got := last.Header().Get(name); got != want {
					t.Errorf("S1-24: %s is %q, want %q", name, got, want)
				}
			}
			hits := w.hits.Load()
			w.ask(t.Context(), prompt("work 1"))
			if w.hits.Load() != hits {
				t.Error("a refused call was forwarded")
			}
			w.answer = fine
			if got := w.ask(t.Context(), prompt("hi"), "X-Client-Id", "b"); got.Code != http.StatusOK ||
				got.Header().Get("X-Retry-Budget-Exceeded") != "" {
				t.Errorf("somebody else got %d %v", got.Code, got.Header())
			}
		})
	})
}

// TestRetries: the gateway alone retries.
func TestRetries(t *testing.T) {
	t.Run("S2-19_the_third_no_ends_it", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = busy("1")
			got := w.ask(t.Context(), prompt("hi"))
			if n := w.hits.Load(); n != 3 || got.Code != http.StatusTooManyRequests ||
				got.Header().Get("X-Retry-Budget-Exceeded") != "" {
				t.Errorf("%d tries, then %d %v", n, got.Code, got.Header())
			}
			if s := w.Stats(); s.Retried != 2 || s.Exhausted != 1 {
				t.Errorf("S3-18: %d retried, %d exhausted", s.Retried, s.Exhausted)
			}
		})
	})
	t.Run("S3-24_S3-42_no_sooner_than_the_hint", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			first := true
			w.answer = func(r *http.Request) *http.Response {
				if first {
					first = false
					return busy("5")(r)
				}
				return fine(r)
			}
			got := w.ask(t.Context(), prompt("hi"))
			tries := w.all()
			if got.Code != http.StatusOK || len(tries) != 2 {
				t.Fatalf("%d after %d tries: %s", got.Code, len(tries), got.Body)
			}
			if gap := tries[1].at.Sub(tries[0].at); gap < 5*time.Second || gap > 9*time.Second {
				t.Errorf("tried again after %s", gap)
			}
		})
	})
	t.Run("S3-17_who_will_not_wait_so_long_is_told", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = busy("40")
			began := time.Now()
			got := w.ask(t.Context(), prompt("hi"))
			if took := time.Since(began); got.Code != http.StatusTooManyRequests || w.hits.Load() != 1 ||
				took > time.Second || got.Header().Get("Retry-After") == "" {
				t.Errorf("%d after %s, %v", got.Code, took, got.Header())
			}
		})
	})
	t.Run("S3-28_an_sdk_that_retries_is_told_of", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			got := w.ask(t.Context(), prompt("hi"), "X-Stainless-Retry-Count", "1")
			if got.Header().Get("X-Quorlease-Warning") == "" || !strings.Contains(w.log.String(), "retries by itself") {
				t.Errorf("%v; %s", got.Header(), w.log.String())
			}
		})
	})
	t.Run("S3-46_layers_that_multiply", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.warm()
			// Two rounds of an application around two of an SDK are four calls at least: the fifth
			// is over three retries.
			got := w.ask(t.Context(), prompt("hi"), "X-Retry-Attempt", "2", "X-Stainless-Retry-Count", "1")
			if got.Code != http.StatusTooManyRequests || w.hits.Load() != 0 {
				t.Errorf("%d, %d reached the provider", got.Code, w.hits.Load())
			}
		})
	})
	t.Run("S2-22_who_leaves_holds_nothing", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = busy("20")
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			w.ask(ctx, prompt("hi"))
			pass(10 * time.Millisecond)
			if _, leases := w.level("deployment", "gpt"); leases != 0 || w.hits.Load() != 1 {
				t.Errorf("%d leases, %d tries", leases, w.hits.Load())
			}
		})
	})
}

// TestSpendCap: money that is used up comes back by nobody's waiting.
func TestSpendCap(t *testing.T) {
	t.Run("S3-27_nothing_is_sent_after_it", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response {
				return says(http.StatusTooManyRequests, `{"error":{"message":"You exceeded your current quota",`+
					`"type":"insufficient_quota","code":"credit_balance_exhausted"}}`)
			}
			got := w.ask(t.Context(), prompt("hi"))
			if got.Header().Get("Retry-After") != "" || got.Header().Get("X-Should-Retry") != "false" {
				t.Errorf("%d %v", got.Code, got.Header())
			}
			for i := range 20 {
				w.ask(t.Context(), prompt(fmt.Sprint("more ", i)))
				pass(50 * time.Millisecond)
			}
			if n := w.hits.Load(); n != 1 {
				t.Errorf("%d reached the provider", n)
			}
			if n := strings.Count(w.log.String(), "credit_balance_exhausted"); n != 1 {
				t.Errorf("%d alerts: %s", n, w.log.String())
			}
		})
	})
}

// TestCoalesced: equal requests in flight are one call, one charge, and as many answers.
func TestCoalesced(t *testing.T) {
	t.Run("S2-11_S2-12_S2-30_ten_equal_ones", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(r *http.Request) *http.Response {
				pass(time.Second)
				return fine(r)
			}
			var joined sync.WaitGroup
			for i := range 10 {
				joined.Go(func() {
					body := prompt("same")
					if i%2 == 0 {
						body = strings.Replace(body, `{"model"`, `{ "model"`, 1)
					}
					if got := w.ask(t.Context(), body); got.Code != http.StatusOK ||
						!strings.Contains(got.Body.String(), "hello") {
						t.Errorf("%d %s", got.Code, got.Body)
					}
				})
			}
			joined.Wait()
			s := w.Stats()
			if w.hits.Load() != 1 || s.Shared.Coalesced != 9 || s.Charges.Asked+s.Charges.Permits != 1 {
				t.Errorf("%d calls, %+v, %+v", w.hits.Load(), s.Shared, s.Charges)
			}
			w.ask(t.Context(), prompt("same"), "X-Coalesce", "false")
			if w.hits.Load() != 2 {
				t.Errorf("%d calls after one that is not to be shared", w.hits.Load())
			}
		})
	})
}

// TestCircuit: nobody is asked who keeps saying no, and a class decides what that means.
func TestCircuit(t *testing.T) {
	t.Run("S2-15_S2-17_live_is_refused_and_batch_waits", func(t *testing.T) {
		classes := func(c *gateway.Config) {
			c.Classes = []gateway.Class{
				{Name: "", MaxWait: 10 * time.Second},
				{Name: "batch", MaxWait: 10 * time.Minute, Closed: circuit.Defer},
			}
		}
		bubble(t, classes, func(t *testing.T, w *world) {
			w.answer = busy("1")
			w.ask(t.Context(), prompt("hi"))
			w.answer = fine
			began := time.Now()
			got := w.ask(t.Context(), prompt("other"))
			if got.Code != refuse.CircuitOpen.Status() || got.Header().Get("Retry-After") == "" || w.hits.Load() != 3 {
				t.Errorf("%d %v after %d tries", got.Code, got.Header(), w.hits.Load())
			}
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("S2-17: it took %s to say so", took)
			}
		})
	})
}
