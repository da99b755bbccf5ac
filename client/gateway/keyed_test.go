package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/replay"
)

const (
	keyHeader = replay.Header
	files     = "/v1/files"
)

// note is a write that has an effect each time: it says how many there were.
func (w *world) note(*http.Request) *http.Response {
	n := w.hits.Load()
	answer := fine(nil)
	answer.Header.Set("X-Ratelimit-Remaining-Requests", "7")
	answer.Header.Set("X-Request-Id", fmt.Sprint("req-", n))
	return answer
}

// post sends a write to any path.
func (w *world) post(ctx context.Context, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("X-Client-Id", "a")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.serve(r)
}

// TestKeys: what has an idempotency key has one effect, and its answer is given again.
func TestKeys(t *testing.T) {
	t.Run("S3-11_a_repeated_task_has_one_effect", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = w.note
			first := w.ask(t.Context(), prompt("hi"), keyHeader, `"k"`)
			// Another spelling is the same payload, and the key without quotation marks the same key.
			other := strings.Replace(prompt("hi"), `{"model":"gpt-4o",`, `{ "model" : "gpt-4o", `, 1)
			for i, again := range []*httptest.ResponseRecorder{
				w.ask(t.Context(), prompt("hi"), keyHeader, `"k"`), w.ask(t.Context(), other, keyHeader, "k"),
			} {
				if again.Code != first.Code || again.Body.String() != first.Body.String() ||
					again.Header().Get("Content-Type") != "application/json" || again.Header().Get("X-Request-Id") != "req-1" {
					t.Errorf("%d: %d %v %s, first %d %s", i, again.Code, again.Header(), again.Body, first.Code, first.Body)
				}
				if again.Header().Get(replay.Replayed) != "true" || again.Header().Get("X-Ratelimit-Remaining-Requests") != "" {
					t.Errorf("%d: %v", i, again.Header())
				}
			}
			if got := first.Header(); got.Get(replay.Replayed) != "" || got.Get("X-Ratelimit-Remaining-Requests") != "7" {
				t.Errorf("the first: %v", got)
			}
			if w.hits.Load() != 1 || w.all()[0].header.Get(keyHeader) != `"k"` || w.Stats().Replays.Replayed != 2 {
				t.Errorf("%d were sent: %+v", w.hits.Load(), w.Stats().Replays)
			}
		})
	})
	t.Run("S3-32_what_is_queued_again_is_charged_once", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = w.note
			before, _ := w.level("tenant", "a")
			for range 100 {
				// The budget of retries would refuse a hundred tries of one piece of work.
				got := w.ask(t.Context(), prompt("task"), keyHeader, "task-1", "X-Retry-Attempt", "9")
				if got.Code != http.StatusOK {
					t.Fatalf("%d %s", got.Code, got.Body)
				}
			}
			after, _ := w.level("tenant", "a")
			s := w.Stats()
			if w.hits.Load() != 1 || s.Charges.Asked+s.Charges.Permits != 1 || s.Attempts.Declared != 1 ||
				before["tokens"]-after["tokens"] > 200 {
				t.Errorf("%d effects, %+v, %+v; %v of %v", w.hits.Load(), s.Charges, s.Attempts, after, before)
			}
		})
	})
	t.Run("refusals", func(t *testing.T) {
		bubble(t, requiring("/v1/chat/*", files), func(t *testing.T, w *world) {
			w.answer = func(r *http.Request) *http.Response { pass(time.Minute); return w.note(r) }
			var joined sync.WaitGroup
			joined.Go(func() { w.ask(t.Context(), prompt("hi"), keyHeader, "k") })
			synctest.Wait()
			for _, row := range []struct {
				name, key, body string
				want            int
			}{
				{"in_flight", "k", prompt("hi"), http.StatusConflict},
				{"other_payload", "k", prompt("ho"), http.StatusUnprocessableEntity},
				{"missing", "", prompt("hi"), http.StatusBadRequest},
				{"malformed", `"k`, prompt("hi"), http.StatusBadRequest},
				{"too_long", strings.Repeat("k", 257), prompt("hi"), http.StatusBadRequest},
			} {
				got := w.ask(t.Context(), row.body, keyHeader, row.key)
				if got.Code != row.want || !strings.Contains(got.Body.String(), `"param":"Idempotency-Key"`) {
					t.Errorf("%s: %d %s", row.name, got.Code, got.Body)
				}
				if wait := got.Header().Get("Retry-After"); (wait != "") != (row.name == "in_flight") {
					t.Errorf("%s: come back after %q", row.name, wait)
				}
			}
			if got := w.post(t.Context(), files, "x"); got.Code != http.StatusBadRequest || w.hits.Load() != 1 {
				t.Errorf("an upload without a key: %d %s", got.Code, got.Body)
			}
			joined.Wait()
		})
	})
	t.Run("while_a_circuit_is_open", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.ask(t.Context(), prompt("hi"), keyHeader, "k")
			w.answer = busy("60")
			w.ask(t.Context(), prompt("other"))
			if got := w.ask(t.Context(), prompt("hi"), keyHeader, "k"); got.Code != http.StatusOK {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		})
	})
	t.Run("two_keys_are_two_effects", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(r *http.Request) *http.Response { pass(time.Second); return w.note(r) }
			var joined sync.WaitGroup
			for _, key := range []string{"k", "l", ""} {
				joined.Go(func() { w.ask(t.Context(), prompt("same"), keyHeader, key) })
			}
			joined.Wait()
			if w.hits.Load() != 3 || w.Stats().Shared.Coalesced != 0 {
				t.Errorf("%d were sent", w.hits.Load())
			}
		})
	})
}

// requiring is a gateway that wants keys on some paths.
func requiring(paths ...string) func(*gateway.Config) {
	return func(c *gateway.Config) { c.Replays.Required = paths }
}

// TestKeysOfOthers: nobody is given what somebody else was answered.
func TestKeysOfOthers(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		w.answer = w.note
		for i, who := range [][]string{
			{"X-Client-Id", "a"},
			{"X-Client-Id", "b"},
			{"X-Client-Id", "a", "X-Quorlease-Tenant", "t"},
			{"X-Client-Id", "a", "Authorization", "Bearer one"},
			{"X-Client-Id", "a", "Authorization", "Bearer two"},
			{"X-Client-Id", "b", "X-Api-Key", "Bearer one"},
		} {
			for range 2 {
				got := w.ask(t.Context(), prompt("hi"), append(who, keyHeader, "k")...)
				if got.Code != http.StatusOK || w.hits.Load() != int64(i+1) {
					t.Errorf("%q: %d %s after %d calls", who, got.Code, got.Body, w.hits.Load())
				}
			}
		}
		// A read has no key, whatever it says.
		for range 2 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/v1/models", nil)
			r.RemoteAddr = "127.0.0.1:1"
			r.Header.Set("X-Client-Id", "a")
			r.Header.Set(keyHeader, `"`)
			if got := w.serve(r); got.Code != http.StatusOK {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		}
		if w.hits.Load() != 8 {
			t.Errorf("%d were sent", w.hits.Load())
		}
	})
}

// TestKeysOfFailures: what failed, was cut or is too large is done again.
func TestKeysOfFailures(t *testing.T) {
	cut := func(*http.Request) *http.Response {
		answer := events()
		answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(chunk("a")), broken{}))
		return answer
	}
	spoilt := func(*http.Request) *http.Response {
		return events(chunk("a"), `data: {"error":{"message":"The server is overloaded",`+
			`"type":"service_unavailable_error","code":"server_is_overloaded"}}`+"\n\n")
	}
	unbounded := func(*http.Request) *http.Response {
		answer := fine(nil)
		answer.ContentLength, answer.Close = -1, true
		return answer
	}
	large := func(*http.Request) *http.Response { return says(200, strings.Repeat("x", 2<<20)) }
	for name, answer := range map[string]func(*http.Request) *http.Response{
		"refused": busy("60"), "cut": cut, "an_error_in_a_stream": spoilt, "without_an_end": unbounded, "too_large": large,
		"broken":      func(*http.Request) *http.Response { return says(500, `{"error":{}}`) },
		"a_wrong_key": func(*http.Request) *http.Response { return says(403, `{"error":{}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, w *world) {
				w.answer = answer
				w.ask(t.Context(), streaming("hi"), keyHeader, "k")
				pass(2 * time.Minute)
				w.answer = w.note
				before := w.hits.Load()
				got := w.ask(t.Context(), streaming("hi"), keyHeader, "k")
				if got.Code != http.StatusOK || got.Header().Get(replay.Replayed) != "" || w.hits.Load() != before+1 {
					t.Errorf("%d %v, %d were sent", got.Code, got.Header(), w.hits.Load())
				}
			})
		})
	}
	t.Run("what_the_provider_refuses_for_good_is_an_answer", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response { return says(http.StatusBadRequest, `{"error":{"message":"no"}}`) }
			for range 2 {
				got := w.ask(t.Context(), prompt("hi"), keyHeader, "k")
				if got.Code != http.StatusBadRequest || w.hits.Load() != 1 {
					t.Errorf("%d %s, %d were sent", got.Code, got.Body, w.hits.Load())
				}
			}
		})
	})
}

// TestKeysAndClientsThatLeave: what was sent is worked on to its end, and its answer is there for
// whoever comes again. What only waits is given up.
func TestKeysAndClientsThatLeave(t *testing.T) {
	t.Run("in_the_middle_of_a_stream", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			from, to := io.Pipe()
			w.answer = func(r *http.Request) *http.Response {
				answer := events()
				answer.Body = from
				context.AfterFunc(r.Context(), func() { _ = from.CloseWithError(r.Context().Err()) })
				return answer
			}
			var joined sync.WaitGroup
			joined.Go(func() {
				for _, part := range []string{chunk("a"), chunk("b"), usageChunk, doneChunk} {
					pass(time.Second)
					if _, err := io.WriteString(to, part); err != nil {
						t.Error(err)
					}
				}
				_ = to.Close()
			})
			ctx, leave := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer leave()
			joined.Go(func() { w.ask(ctx, streaming("hi"), keyHeader, "k") })
			pass(2500 * time.Millisecond)
			if got := w.ask(t.Context(), streaming("hi"), keyHeader, "k"); got.Code != http.StatusConflict {
				t.Errorf("%d %s while it goes on", got.Code, got.Body)
			}
			joined.Wait()
			got := w.ask(t.Context(), streaming("hi"), keyHeader, "k")
			want := strings.ReplaceAll(chunk("a")+chunk("b"), `,"usage":null`, "") + doneChunk
			if got.Body.String() != want || w.hits.Load() != 1 ||
				!strings.HasPrefix(got.Header().Get("Content-Type"), "text/event-stream") {
				t.Errorf("%d %v %q, want %q", got.Code, got.Header(), got.Body, want)
			}
		})
	})
	t.Run("before_it_was_sent", func(t *testing.T) {
		slow := strings.Replace(limits,
			"{tokens: 100_000/s}, burst: {tokens: 100_000}", "{tokens: 10/s}, burst: {tokens: 110}", 1)
		limited(t, slow, nil, func(t *testing.T, w *world) {
			w.ask(t.Context(), prompt("all of it"))
			// Without a deadline, which its place in the queue would have too.
			ctx, leave := context.WithCancel(t.Context())
			defer time.AfterFunc(time.Second, leave).Stop()
			before := w.hits.Load()
			w.ask(ctx, prompt("hi"), keyHeader, "k")
			pass(time.Hour)
			if s := w.Stats(); w.hits.Load() != before || s.Gone != 1 || s.Replays.Flying != 0 {
				t.Errorf("%d were sent, %d gone, %+v, %+v", w.hits.Load()-before, s.Gone, s.Replays, s.Refusals)
			}
		})
	})
	t.Run("and_the_gateway_is_closed", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(r *http.Request) *http.Response { <-r.Context().Done(); return fine(r) }
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			var joined sync.WaitGroup
			joined.Go(func() { w.ask(ctx, prompt("hi"), keyHeader, "k") })
			pass(time.Minute)
			if n := w.Stats().Replays.Flying; n != 1 {
				t.Errorf("%d are in flight", n)
			}
			if err := w.Gateway.Close(); err != nil {
				t.Error(err)
			}
			joined.Wait()
		})
	})
}

// TestKeysOfUploads: a write that is no work for a model has one effect as well.
func TestKeysOfUploads(t *testing.T) {
	form := func(boundary, text string) (string, string) {
		const part = "\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n"
		return "--" + boundary + part + text + "\r\n--" + boundary + "--\r\n", "multipart/form-data; boundary=" + boundary
	}
	bubble(t, nil, func(t *testing.T, w *world) {
		w.answer = w.note
		one, kind := form("one", "batch")
		first := w.post(t.Context(), files, one, keyHeader, "k", "Content-Type", kind)
		if first.Code != http.StatusOK || w.all()[0].body != one || w.all()[0].header.Get(keyHeader) != "k" {
			t.Errorf("%d: the provider got %+v", first.Code, w.all())
		}
		// Programs draw another boundary each time.
		two, kind := form("two", "batch")
		again := w.post(t.Context(), files, two, keyHeader, "k", "Content-Type", kind)
		if again.Body.String() != first.Body.String() || again.Header().Get(replay.Replayed) != "true" || w.hits.Load() != 1 {
			t.Errorf("%d %v %s", again.Code, again.Header(), again.Body)
		}
		three, kind := form("three", "other")
		got := w.post(t.Context(), files, three, keyHeader, "k", "Content-Type", kind)
		if got.Code != http.StatusUnprocessableEntity {
			t.Errorf("another upload: %d", got.Code)
		}
		got = w.post(t.Context(), "/v1/batches", two, keyHeader, "k", "Content-Type", kind)
		if got.Code != http.StatusUnprocessableEntity {
			t.Errorf("another path: %d", got.Code)
		}
		w.answer = func(*http.Request) *http.Response {
			answer := says(http.StatusOK, "half of it")
			answer.ContentLength, answer.Body = 100, io.NopCloser(io.MultiReader(strings.NewReader("half"), broken{}))
			return answer
		}
		w.post(t.Context(), files, one, keyHeader, "l")
		w.answer = w.note
		got = w.post(t.Context(), files, one, keyHeader, "l")
		if got.Code != http.StatusOK || got.Header().Get(replay.Replayed) != "" {
			t.Errorf("after half of it: %d %v", got.Code, got.Header())
		}
		if n := w.Stats(); n.Held != 0 || n.Replays.Flying != 0 {
			t.Errorf("%d bytes are held, %+v", n.Held, n.Replays)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		w.answer = func(r *http.Request) *http.Response { pass(time.Minute); return w.note(r) }
		w.post(ctx, files, one, keyHeader, "m")
		before := w.hits.Load()
		got = w.post(t.Context(), files, one, keyHeader, "m")
		if got.Header().Get(replay.Replayed) != "true" || w.hits.Load() != before {
			t.Errorf("whoever left and came again: %d %v", got.Code, got.Header())
		}
	})
}

// TestKeysReloaded: other bounds count at once, and what is in flight stays so.
func TestKeysReloaded(t *testing.T) {
	var config gateway.Config
	bubble(t, func(c *gateway.Config) { config = *c }, func(t *testing.T, w *world) {
		w.answer = w.note
		w.ask(t.Context(), prompt("hi"), keyHeader, "k")
		reload := func(c replay.Config) {
			t.Helper()
			config.Replays = c
			if err := w.Reload(config); err != nil {
				t.Fatal(err)
			}
		}
		reload(replay.Config{Required: []string{chat}})
		if got := w.ask(t.Context(), prompt("hi"), keyHeader, "k"); got.Header().Get(replay.Replayed) == "" {
			t.Errorf("%d %v", got.Code, got.Header())
		}
		if got := w.ask(t.Context(), prompt("hi")); got.Code != http.StatusBadRequest {
			t.Errorf("without a key: %d", got.Code)
		}
		reload(replay.Config{Keep: -1})
		for range 2 {
			if got := w.ask(t.Context(), prompt("hi"), keyHeader, "k"); got.Header().Get(replay.Replayed) != "" {
				t.Errorf("%d %v although nothing is kept", got.Code, got.Header())
			}
		}
		config.Replays = replay.Config{Bytes: 1}
		if err := w.Reload(config); err == nil || !strings.Contains(err.Error(), "gateway idempotency: bytes: 1,") {
			t.Errorf("%v", err)
		}
	})
}
