package gate_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/quorlease/quorlease/client/gateway/gate"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// post sends a request to the service, which answers with what it has read, or with the status
// that the context's error stands for.
func (w *world) post(ctx context.Context, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/work", body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	w.gate.HTTP(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		read, err := io.ReadAll(r.Body)
		if err == nil {
			err = w.answer(r.Context())
		}
		if err != nil {
			rw.WriteHeader(http.StatusBadGateway)
			_, err = io.WriteString(rw, err.Error())
		} else {
			_, err = rw.Write(read)
		}
		if err != nil {
			w.t.Error(err)
		}
		rw.(http.Flusher).Flush() //nolint:forcetypeassert // what it was before, it still is
	})).ServeHTTP(recorder, r)
	return recorder
}

const asNotes = "Bearer key of notes"

func TestHTTP(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		nobody := w.post(t.Context(), strings.NewReader("x"))
		if nobody.Code != http.StatusUnauthorized || nobody.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("without a key: %d %v", nobody.Code, nobody.Header())
		}
		passed := w.post(t.Context(), strings.NewReader("one body"), "Authorization", asNotes, "X-Retry-Attempt", "2")
		if a := w.last(); passed.Code != http.StatusOK || passed.Body.String() != "one body" ||
			a.Who.Tenant != "notes-team" || a.Attempt != 2 {
			t.Errorf("%d %s as %+v", passed.Code, passed.Body, a)
		}
		w.post(t.Context(), strings.NewReader("one"), "Authorization", asNotes, "Model", "narrow")
		denied := w.post(t.Context(), strings.NewReader("other"), "Authorization", asNotes, "Model", "narrow")
		if denied.Code != http.StatusTooManyRequests || denied.Header().Get("Retry-After") == "" ||
			denied.Header().Get("X-Retry-Budget-Exceeded") != "" || !strings.Contains(denied.Body.String(), `"limit":"narrow"`) {
			t.Errorf("%d %v %s, want the limit's refusal", denied.Code, denied.Header(), denied.Body)
		}
		if got := w.gate.Stats(); got.Passed != 2 || got.Refused != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestHTTPRetryBudget(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		var refused *httptest.ResponseRecorder
		for range 20 {
			w.post(t.Context(), http.NoBody, "Authorization", asNotes)
			pass(100 * time.Millisecond)
		}
		for range 200 {
			answer := w.post(t.Context(), http.NoBody, "Authorization", asNotes, "X-Retry-Attempt", "1")
			if answer.Code != http.StatusOK {
				refused = answer
			}
			pass(20 * time.Millisecond)
		}
		if refused == nil {
			t.Fatal("200 retries, and none is refused")
		}
		if h := refused.Header(); refused.Code != http.StatusTooManyRequests || h.Get("X-Retry-Budget-Exceeded") != "true" ||
			h.Get("Retry-After") != "60" || h.Get("X-Should-Retry") != "false" ||
			!strings.Contains(refused.Body.String(), `\"notes\"`) {
			t.Errorf("%d %v %s", refused.Code, h, refused.Body)
		}
	})
}

// TestHTTPKnowsWorkAgain: by its body, as long as that is held, or by its id.
func TestHTTPKnowsWorkAgain(t *testing.T) {
	bubble(t, func(c *gate.Config) { c.BodyMax = 16 }, func(t *testing.T, w *world) {
		w.serve = func(context.Context) error { return errors.New("down") }
		long := strings.Repeat("x", 17)
		for _, row := range []struct {
			name, body string
			header     []string
			want       uint32
		}{
			{"a_body", `{"a":1, "b":2}`, nil, 1},
			{"a_body_that_is_too_long", long, nil, 0},
			{"an_id_of_one", long, []string{"Idempotency-Key", "7"}, 1},
			{"no_body", "", nil, 1},
		} {
			for i := range uint32(2) {
				// A reader of which nobody knows how long it is.
				body := iotest.OneByteReader(strings.NewReader(row.body))
				if row.body == "" {
					body = http.NoBody
				}
				answer := w.post(t.Context(), body, append(row.header, "Authorization", asNotes)...)
				if got := w.last().Attempt; answer.Code != http.StatusBadGateway || got != i*row.want {
					t.Errorf("%s: %d as attempt %d, want %d", row.name, answer.Code, got, i*row.want)
				}
			}
		}
	})
}

// TestHTTPBodies: what can't be read is the handler's to see, and what it panics for goes on.
func TestHTTPBodies(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		broken := io.MultiReader(strings.NewReader("some"), iotest.ErrReader(errors.New("cut off")))
		answer := w.post(t.Context(), broken, "Authorization", asNotes)
		if answer.Code != http.StatusBadGateway || answer.Body.String() != "cut off" {
			t.Errorf("%d %s, want the handler to see that the body is cut", answer.Code, answer.Body)
		}
		w.serve = func(context.Context) error { panic("lost") }
		func() {
			defer func() {
				if recover() != "lost" {
					t.Error("the panic does not go on")
				}
			}()
			w.post(t.Context(), strings.NewReader("x"), "Authorization", asNotes)
		}()
		w.serve = nil
		w.post(t.Context(), strings.NewReader("x"), "Authorization", asNotes)
		if got := w.last().Attempt; got != 1 {
			t.Errorf("attempt %d after a panic, want 1", got)
		}
	})
}

// TestAPriceThatPanics: the attempt has failed, and is not in flight for ever.
func TestAPriceThatPanics(t *testing.T) {
	lost := true
	bubble(t, func(c *gate.Config) {
		c.Price = func(ctx context.Context, c *gate.Call) gate.Price {
			if lost {
				panic("lost")
			}
			return price(ctx, c)
		}
	}, func(t *testing.T, w *world) {
		func() {
			defer func() {
				if recover() != "lost" {
					t.Error("the panic does not go on")
				}
			}()
			w.post(t.Context(), strings.NewReader("x"), "Authorization", asNotes)
		}()
		lost = false
		w.post(t.Context(), strings.NewReader("x"), "Authorization", asNotes)
		if got := w.last().Attempt; got != 1 {
			t.Errorf("attempt %d after a panic, want 1", got)
		}
	})
}

// TestBodiesAreBounded: while there is no room work is not known again, and is served.
func TestBodiesAreBounded(t *testing.T) {
	bubble(t, func(c *gate.Config) { c.BodyMax, c.BodiesMax = 8, 12 }, func(t *testing.T, w *world) {
		down := func(context.Context) error { return errors.New("down") }
		twice := func(ctx context.Context, body string) (attempts [2]uint32) {
			w.serve = down
			for i := range attempts {
				answer := w.post(ctx, strings.NewReader(body), "Authorization", asNotes)
				if answer.Code != http.StatusBadGateway || answer.Body.String() != "down" {
					t.Errorf("%d %s", answer.Code, answer.Body)
				}
				attempts[i] = w.last().Attempt
			}
			return attempts
		}
		var full, beside [2]uint32
		w.serve = func(ctx context.Context) error {
			full, beside = twice(ctx, "7 bytes"), twice(ctx, "four")
			return nil
		}
		w.post(t.Context(), iotest.OneByteReader(strings.NewReader("8 of 12.")), "Authorization", asNotes)
		if full != [2]uint32{0, 0} || beside != [2]uint32{0, 1} {
			t.Errorf("with 4 bytes left, 7 are attempts %v and 4 are %v, want 0 0 and 0 1", full, beside)
		}
		if got := twice(t.Context(), "7 bytes"); got != [2]uint32{0, 1} {
			t.Errorf("attempts %v when all is answered, want 0 1", got)
		}
	})
}

// taken is an answer whose connection can be taken over.
type taken struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (t taken) Hijack() (net.Conn, *bufio.ReadWriter, error) { return t.conn, nil, nil }

// TestHijack: what could be taken over still can, and what could not says so.
func TestHijack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		var conn net.Conn
		var err error
		handler := w.gate.HTTP(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			conn, _, err = rw.(http.Hijacker).Hijack() //nolint:forcetypeassert // what it was before, it still is
		}))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", asNotes)
		if handler.ServeHTTP(taken{httptest.NewRecorder(), near}, r); err != nil || conn != near {
			t.Errorf("%v, got %v", err, conn)
		}
		if handler.ServeHTTP(httptest.NewRecorder(), r); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("%v, want that there is nothing to take over", err)
		}
	})
}

// known is a service's own way to know who calls.
type known string

// Identify says what the service found before.
func (k known) Identify(r *http.Request) (who.Identity, *refuse.Refusal) {
	name, _ := r.Context().Value(k).(string)
	if name == "" {
		return who.Identity{}, &refuse.Refusal{Reason: refuse.Unidentified, Detail: "Log in first."}
	}
	return who.Identity{Client: name, Tenant: "users"}, nil
}

// TestOnesOwnIdentity: who has logged in elsewhere needs no key here.
func TestOnesOwnIdentity(t *testing.T) {
	const user = known("user")
	bubble(t, func(c *gate.Config) { c.Who = user }, func(t *testing.T, w *world) {
		if answer := w.post(t.Context(), http.NoBody); answer.Code != http.StatusUnauthorized ||
			!strings.Contains(answer.Body.String(), "Log in first.") {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		answer := w.post(context.WithValue(t.Context(), user, "ada"), http.NoBody)
		if a := w.last(); answer.Code != http.StatusOK || a.Who.Client != "ada" || a.Who.Tenant != "users" ||
			a.Decision.Lease.Charges[0].Key != "users" {
			t.Errorf("%d as %+v", answer.Code, a)
		}
	})
}

// TestWhatNoLimitFits passes, and is counted.
func TestWhatNoLimitFits(t *testing.T) {
	bubble(t, func(c *gate.Config) { c.Price = nil }, func(t *testing.T, w *world) {
		answer := w.post(t.Context(), http.NoBody, "Authorization", asNotes)
		if s := w.gate.Stats(); answer.Code != http.StatusOK || s.Unlimited != 1 || w.last().Decision != nil {
			t.Errorf("%d, %+v", answer.Code, s)
		}
	})
}

// TestWhatCantBeAsked is refused, and says what is wrong.
func TestWhatCantBeAsked(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		answer := w.post(t.Context(), http.NoBody, "Authorization", asNotes, "Model", strings.Repeat("m", 300))
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "attributes") {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		if err := w.gate.Close(); err != nil {
			t.Fatal(err)
		}
		answer = w.post(t.Context(), http.NoBody, "Authorization", asNotes)
		if answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%d after Close", answer.Code)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := gate.New(gate.Config{BodyMax: -1, BodiesMax: -2})
	const want = "gate configuration: authority: missing\nwho: missing\nbody max: -1, 1 to 67108864\n" +
		"bodies max: -2, -1 (body max) to 68719476736"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
