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
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// long is a prompt of some length.
func long(n int) string { return prompt(strings.Repeat("word ", n/5)) }

// small has room for three bodies of 16 KiB, and for one of a client.
func small(c *gateway.Config) {
	c.BodyMax, c.BodiesMax, c.BodiesClientMax = 20<<10, 60<<10, 30<<10
	c.NoSharing = true
}

// TestBodies: what clients have sent is held as long as it may have to be sent again, and no
// client holds all of the room.
func TestBodies(t *testing.T) {
	t.Run("one_client_does_not_fill_the_room", func(t *testing.T) {
		bubble(t, small, func(t *testing.T, w *world) {
			hang := make(chan struct{})
			w.answer = func(r *http.Request) *http.Response {
				if body, _ := io.ReadAll(r.Body); len(body) > 10<<10 {
					<-hang
				}
				return fine(r)
			}
			var asking sync.WaitGroup
			asking.Go(func() {
				if got := w.ask(t.Context(), long(16<<10)); got.Code != http.StatusOK {
					t.Errorf("%d %s", got.Code, got.Body)
				}
			})
			synctest.Wait()
			got := w.ask(t.Context(), long(16<<10))
			if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" ||
				w.Stats().Refusals[refuse.Concurrency] != 1 || w.Stats().Unread != 0 {
				t.Errorf("a second one of the same client: %d %s", got.Code, got.Body)
			}
			if got := w.ask(t.Context(), prompt("hi"), "X-Client-Id", "b"); got.Code != http.StatusOK {
				t.Errorf("another client: %d %s", got.Code, got.Body)
			}
			close(hang)
			asking.Wait()
			if got := w.ask(t.Context(), long(16<<10)); got.Code != http.StatusOK || w.Stats().Held != 0 {
				t.Errorf("after it: %d %s, %d bytes are held", got.Code, got.Body, w.Stats().Held)
			}
		})
	})
	t.Run("together_they_may_be_full", func(t *testing.T) {
		bubble(t, small, func(t *testing.T, w *world) {
			hang := make(chan struct{})
			w.answer = func(r *http.Request) *http.Response {
				<-hang
				return fine(r)
			}
			var asking sync.WaitGroup
			for _, client := range []string{"a", "b", "c"} {
				asking.Go(func() { w.ask(t.Context(), long(16<<10), "X-Client-Id", client) })
			}
			synctest.Wait()
			if got := w.ask(t.Context(), long(16<<10), "X-Client-Id", "d"); got.Code != http.StatusServiceUnavailable {
				t.Errorf("%d %s with %d bytes held", got.Code, got.Body, w.Stats().Held)
			}
			close(hang)
			asking.Wait()
		})
	})
	for _, declared := range []bool{true, false} {
		t.Run(fmt.Sprintf("the_largest_fits_where_there_is_room_for_one_declared_%t", declared), func(t *testing.T) {
			one := func(c *gateway.Config) { c.BodyMax, c.BodiesMax, c.BodiesClientMax = 20<<10, 20<<10, 20<<10 }
			bubble(t, one, func(t *testing.T, w *world) { largest(t, w, declared) })
		})
	}
	for _, alone := range []bool{true, false} {
		name := "a_stream_holds_none"
		if !alone {
			name = "a_stream_that_is_shared_holds_none"
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(c *gateway.Config) { c.NoSharing = alone }, streamHoldsNone)
		})
	}
}

func streamHoldsNone(t *testing.T, w *world) {
	from, to := io.Pipe()
	w.answer = func(*http.Request) *http.Response {
		answer := events()
		answer.Body = from
		return answer
	}
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	var asking sync.WaitGroup
	asking.Go(func() { w.ask(ctx, streaming("hi")) })
	synctest.Wait()
	if w.Stats().Held == 0 {
		t.Error("nothing is held while nothing has come")
	}
	if _, err := io.WriteString(to, chunk("a")); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if held := w.Stats().Held; held != 0 {
		t.Errorf("%d bytes are held by an answer that has begun", held)
	}
	to.Close()
	asking.Wait()
}

// largest asks with bodies about as long as one may be, 20 KiB.
func largest(t *testing.T, w *world, declared bool) {
	for length, want := range map[int]int{
		17 << 10: http.StatusOK, 20<<10 - 1: http.StatusOK, 20 << 10: http.StatusOK,
		20<<10 + 1: http.StatusRequestEntityTooLarge,
	} {
		text := prompt("hi")
		text += strings.Repeat(" ", length-len(text))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+chat, strings.NewReader(text))
		r.RemoteAddr = "127.0.0.1:1234"
		r.Header.Set("X-Client-Id", "a")
		if !declared {
			r.ContentLength = -1
		}
		if got := w.serve(r); got.Code != want || w.Stats().Held != 0 {
			t.Errorf("of %d bytes: %d %s, %d bytes are held", length, got.Code, got.Body, w.Stats().Held)
		}
	}
}
