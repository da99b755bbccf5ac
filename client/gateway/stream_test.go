package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// chunk is one event of a chat's stream.
func chunk(text string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + text +
		`"},"finish_reason":null}],"usage":null}` + "\n\n"
}

const (
	usageChunk = `data: {"id":"c1","object":"chat.completion.chunk","choices":[],` +
		`"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22}}` + "\n\n"
	doneChunk = "data: [DONE]\n\n"
)

// events is a stream of events.
func events(parts ...string) *http.Response {
	answer := says(http.StatusOK, strings.Join(parts, ""), "Content-Type", "text/event-stream; charset=utf-8")
	answer.ContentLength = -1
	return answer
}

func streaming(text string) string {
	return strings.Replace(prompt(text), `{"model"`, `{"stream":true,"model"`, 1)
}

// TestStreams: events are passed on as they come, and say what was used.
func TestStreams(t *testing.T) {
	t.Run("S3-09_usage_is_asked_for_and_hidden", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response {
				return events(chunk("a"), chunk("b"), usageChunk, doneChunk)
			}
			got := w.ask(t.Context(), streaming("hi"))
			text := got.Body.String()
			if got.Code != http.StatusOK || strings.Contains(text, "usage") || !strings.Contains(text, `"b"`) ||
				!strings.HasSuffix(text, doneChunk) {
				t.Errorf("%d %s", got.Code, text)
			}
			if body := w.all()[0].body; !strings.Contains(body, `"include_usage":true`) {
				t.Errorf("the provider was asked %s", body)
			}
			asking := strings.Replace(streaming("ho"), `{"stream"`, `{"stream_options":{"include_usage":true},"stream"`, 1)
			if text := w.ask(t.Context(), asking).Body.String(); !strings.Contains(text, usageChunk) {
				t.Errorf("who asked for its usage got %s", text)
			}
			if e := w.Stats().Estimates; e.Requests() != 2 {
				t.Errorf("%d estimates were compared", e.Requests())
			}
		})
	})
	t.Run("S3-18_an_overload_after_a_200", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			tries := 0
			w.answer = func(*http.Request) *http.Response {
				if tries++; tries == 1 {
					return events("data: {\"error\":{\"message\":\"The server is overloaded\"," +
						"\"type\":\"service_unavailable_error\",\"code\":\"server_is_overloaded\"}}\n\n")
				}
				return events(chunk("a"), usageChunk, doneChunk)
			}
			got := w.ask(t.Context(), streaming("hi"))
			if got.Code != http.StatusOK || strings.Contains(got.Body.String(), "overloaded") || tries != 2 {
				t.Errorf("%d %s after %d tries", got.Code, got.Body, tries)
			}
		})
	})
	t.Run("S2-22_who_leaves_ends_the_call", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			from, to := io.Pipe()
			w.answer = func(r *http.Request) *http.Response {
				answer := events()
				answer.Body = from
				// As a connection does.
				context.AfterFunc(r.Context(), func() { _ = from.CloseWithError(r.Context().Err()) })
				return answer
			}
			go func() {
				for range 5 {
					if _, err := io.WriteString(to, chunk("word")); err != nil {
						return
					}
				}
			}()
			before, _ := w.level("tenant", "a")
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			w.ask(ctx, streaming("hi"))
			pass(10 * time.Millisecond)
			if _, err := io.WriteString(to, chunk("more")); err == nil {
				t.Error("the provider can still write")
			}
			pass(100 * time.Millisecond)
			after, leases := w.level("tenant", "a")
			if s := w.Stats(); leases != 0 || s.Gone != 1 || before["tokens"]-after["tokens"] > 100 {
				t.Errorf("%d leases, %+v, %v of %v", leases, s, after, before)
			}
		})
	})
	t.Run("what_ends_before_its_end_is_cut", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response {
				answer := events()
				answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(chunk("a")), broken{}))
				return answer
			}
			for i, coalesce := range []string{"false", ""} {
				if got := w.ask(t.Context(), streaming("hi"), "X-Coalesce", coalesce); got.Code != aborted {
					t.Errorf("%d: the answer looks as if it were whole", got.Code)
				}
				if n := w.Stats().Cut; n != uint64(i+1) {
					t.Errorf("%d are cut", n)
				}
			}
		})
	})
}

// broken is a connection that breaks.
type broken struct{}

// Read fails.
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestEqualStreams: equal requests in flight get one stream, each from its beginning.
func TestEqualStreams(t *testing.T) {
	t.Run("S2-11_equal_streams_are_one", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response {
				from, to := io.Pipe()
				go func() {
					for _, part := range []string{chunk("a"), chunk("b"), usageChunk, doneChunk} {
						<-time.After(time.Second)
						_, _ = io.WriteString(to, part)
					}
					_ = to.Close()
				}()
				answer := events()
				answer.Body = from
				return answer
			}
			var joined sync.WaitGroup
			for i := range 10 {
				joined.Go(func() {
					// Some come when half of it was sent already: they get it from its beginning.
					pass(time.Duration(i) * 250 * time.Millisecond)
					text := w.ask(t.Context(), streaming("hi")).Body.String()
					if !strings.Contains(text, `"a"`) || !strings.HasSuffix(text, doneChunk) {
						t.Errorf("%d: %q", i, text)
					}
				})
			}
			joined.Wait()
			if s := w.Stats(); w.hits.Load() != 1 || s.Shared.Coalesced != 9 || s.Charges.Asked+s.Charges.Permits != 1 {
				t.Errorf("%d were sent, %+v, %+v", w.hits.Load(), s.Shared, s.Charges)
			}
		})
	})
}
