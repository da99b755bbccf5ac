package httpwrap_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/httpwrap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers with what it has, one after another, the last one for ever.
type server struct {
	answers []http.Response
	err     error
	at      []time.Duration
	markers []string
	bodies  []string
	began   time.Time
	open    int
	// endless answers have bodies that do not end before they are closed.
	endless bool
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.at = append(s.at, time.Since(s.began))
	s.markers = append(s.markers, r.Header.Get("x-retry-attempt"))
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	s.bodies = append(s.bodies, body)
	if s.err != nil {
		return nil, s.err
	}
	answer := s.answers[min(len(s.at), len(s.answers))-1]
	s.open++
	answer.Body = &closing{io.NopCloser(strings.NewReader("no")), s}
	if s.endless {
		body, _ := io.Pipe()
		answer.Body = &closing{body, s}
	}
	return &answer, nil
}

// closing is a body whose end is noticed.
type closing struct {
	io.ReadCloser
	server *server
}

func (c *closing) Close() error { c.server.open--; return c.ReadCloser.Close() }

func says(status int, headers ...string) http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return http.Response{StatusCode: status, Header: h}
}

// ask sends one request in virtual time.
func ask(t *testing.T, s *server, c httpwrap.Config, change func(*http.Request) *http.Request) (int, error) {
	t.Helper()
	c.Base = s
	transport, err := httpwrap.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		r = change(r)
	}
	mine := r.Header.Get("x-retry-attempt")
	answer, err := transport.RoundTrip(r)
	if got := r.Header.Get("x-retry-attempt"); got != mine {
		t.Errorf("the caller's request has the marker %q now", got)
	}
	if err != nil {
		return 0, err
	}
	if err := answer.Body.Close(); err != nil || s.open != 0 {
		t.Errorf("%v, %d answers are left open", err, s.open)
	}
	return answer.StatusCode, nil
}

// TestAttempts: how often each answer is asked for, and when.
func TestAttempts(t *testing.T) {
	t.Parallel()
	const second = time.Second
	hint := says(429, "Retry-After", "22")
	for _, row := range []struct {
		name    string
		answers []http.Response
		config  httpwrap.Config
		status  int
		// from and to are when the tries are made.
		from, to []time.Duration
	}{
		{"served", []http.Response{says(200)}, httpwrap.Config{}, 200, []time.Duration{0}, []time.Duration{0}},
		{
			"S1-43_S3-24_three_attempts_after_the_hint",
			[]http.Response{hint},
			httpwrap.Config{},
			429,
			[]time.Duration{0, 22 * second, 44 * second},
			[]time.Duration{0, 24 * second, 48 * second},
		},
		{
			"S1-43_the_second_is_served",
			[]http.Response{says(503, "retry-after-ms", "1500"), says(200)},
			httpwrap.Config{},
			200,
			[]time.Duration{0, 1500 * time.Millisecond},
			[]time.Duration{0, 3500 * time.Millisecond},
		},
		{
			"S3-30_without_a_hint",
			[]http.Response{says(529)},
			httpwrap.Config{},
			529,
			[]time.Duration{0, second / 2, 3 * second / 2},
			[]time.Duration{0, second, 3 * second},
		},
		{
			"S2-20_a_schedule",
			[]http.Response{says(429)},
			httpwrap.Config{Pauses: provider.Schedule{Step: second, Most: 1}},
			429,
			[]time.Duration{0, second, 3 * second},
			[]time.Duration{0, second, 3 * second},
		},
		{
			"told not to",
			[]http.Response{says(429, "x-should-retry", "false", "Retry-After", "1")},
			httpwrap.Config{},
			429, one, one,
		},
		{
			"told to",
			[]http.Response{says(400, "x-should-retry", "true", "Retry-After", "1"), says(200)},
			httpwrap.Config{},
			200,
			[]time.Duration{0, second},
			[]time.Duration{0, 3 * second},
		},
		{"S2-21_an_error", []http.Response{says(500, "Retry-After", "1")}, httpwrap.Config{}, 500, one, one},
		{"a long hint", []http.Response{says(429, "Retry-After", "61")}, httpwrap.Config{}, 429, one, one},
		{"no retries", []http.Response{hint}, httpwrap.Config{Attempts: 1}, 429, one, one},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: row.answers}
				status, err := ask(t, s, row.config, nil)
				if err != nil || status != row.status || len(s.at) != len(row.from) {
					t.Fatalf("%d, %v after tries at %v, want %d after %d", status, err, s.at, row.status, len(row.from))
				}
				for n, at := range s.at {
					if at < row.from[n] || at > row.to[n] {
						t.Errorf("try %d after %s, want %s to %s", n, at, row.from[n], row.to[n])
					}
					if want := string(rune('0' + n)); s.markers[n] != want || s.bodies[n] != "question" {
						t.Errorf("try %d says %q and asks %q", n, s.markers[n], s.bodies[n])
					}
				}
			})
		})
	}
}

var one = []time.Duration{0}

// TestEdges: what a caller has to do with it.
func TestEdges(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	busy := []http.Response{says(429, "Retry-After", "5")}
	for _, row := range []struct {
		name    string
		server  server
		change  func(*http.Request) *http.Request
		err     error
		markers string
	}{
		{"S3-43_what_failed_is_not_sent_twice", server{err: broken}, nil, broken, "0"},
		{"who has retries of his own", server{answers: busy}, func(r *http.Request) *http.Request {
			r.Header.Set("x-retry-attempt", "4")
			return r
		}, nil, "4 5 6"},
		{"whose number is none", server{answers: busy}, func(r *http.Request) *http.Request {
			r.Header.Set("x-retry-attempt", "many")
			return r
		}, nil, "0 1 2"},
		{"who has no headers", server{answers: busy}, func(r *http.Request) *http.Request {
			r.Header = nil
			return r
		}, nil, "0 1 2"},
		{"who has no body", server{answers: busy}, func(r *http.Request) *http.Request {
			r.Body, r.GetBody = nil, nil
			return r
		}, nil, "0 1 2"},
		{"whose body comes once", server{answers: busy}, func(r *http.Request) *http.Request {
			r.GetBody = nil
			return r
		}, nil, "0"},
		{"whose body is gone", server{answers: busy}, func(r *http.Request) *http.Request {
			r.GetBody = func() (io.ReadCloser, error) { return nil, broken }
			return r
		}, nil, "0"},
		{"who has no time", server{answers: busy}, func(r *http.Request) *http.Request {
			ctx, cancel := context.WithTimeout(r.Context(), 4*time.Second)
			t.Cleanup(cancel)
			return r.WithContext(ctx)
		}, nil, "0"},
		{"S2-22_who_leaves", server{answers: busy}, func(r *http.Request) *http.Request {
			ctx, leave := context.WithCancelCause(r.Context())
			time.AfterFunc(time.Second, func() { leave(broken) })
			return r.WithContext(ctx)
		}, broken, "0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := ask(t, &row.server, httpwrap.Config{}, row.change)
				if got := strings.Join(row.server.markers, " "); !errors.Is(err, row.err) || got != row.markers {
					t.Errorf("%v after tries %s, want %v after %s", err, got, row.err, row.markers)
				}
			})
		})
	}
}

// TestTheLongestHint is obeyed, whatever the chance adds to it.
func TestTheLongestHint(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(n int64) int64{
		"least": func(int64) int64 { return 0 },
		"half":  func(n int64) int64 { return n / 2 },
		"most":  func(n int64) int64 { return n - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: []http.Response{says(429, "Retry-After", "60"), says(200)}}
				status, err := ask(t, s, httpwrap.Config{Draw: draw}, nil)
				if err != nil || status != 200 || s.at[1] < time.Minute {
					t.Errorf("%d, %v after tries at %v, want a second one after a minute", status, err, s.at)
				}
			})
		})
	}
}

// TestAnswersWithoutAnEnd keep nobody waiting, and what was waited for them is a part of the wait.
func TestAnswersWithoutAnEnd(t *testing.T) {
	t.Parallel()
	for hint, want := range map[string]time.Duration{"5": 5 * time.Second, "0.5": time.Second} {
		t.Run(hint, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: []http.Response{says(429, "Retry-After", hint)}, endless: true}
				status, err := ask(t, s, httpwrap.Config{Draw: func(int64) int64 { return 0 }}, nil)
				if err != nil || status != 429 || len(s.at) != 3 || s.at[1] != want || s.at[2] != 2*want {
					t.Errorf("%d, %v after tries at %v, want one every %s", status, err, s.at, want)
				}
			})
		})
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	_, err := httpwrap.New(httpwrap.Config{
		Attempts: 11, WaitMax: 2 * time.Hour, Pauses: provider.Schedule{Step: time.Second},
	})
	for _, want := range []string{
		"wrapper configuration: attempts: 11 is out of range 1..10", "wait max: 2h0m0s is out of range 0s..1h0m0s",
		"pauses: most 0s: must be more than least",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := httpwrap.New(httpwrap.Config{Attempts: -1}); err == nil {
		t.Error("less than one attempt")
	}
}
