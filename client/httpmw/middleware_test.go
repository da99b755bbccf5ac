package httpmw

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

var _ Decider = (*client.Client)(nil)

// decider answers with what it was told to, and keeps what it was asked.
type decider struct {
	decision *client.Decision
	err      error
	asked    []client.Request
}

func (d *decider) Acquire(_ context.Context, r client.Request) (*client.Decision, error) {
	d.asked = append(d.asked, r)
	return d.decision, d.err
}

func denied(wait time.Duration, never bool) *client.Decision {
	return &client.Decision{Source: client.Consensus, Denials: []client.Denial{
		{Reason: "RATE", Limit: "api", Key: "SECRET", Dimension: "requests", RetryAfter: wait, Never: never},
		{Reason: "RETRY_BUDGET", RetryAfter: time.Millisecond},
	}}
}

// serve sends one request through the middleware; passed is the decision that
// the handler found.
func serve(t *testing.T, c Config) (answer *httptest.ResponseRecorder, passed bool, found *client.Decision) {
	t.Helper()
	wrap, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	h := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed, found = true, FromContext(r.Context())
		w.WriteHeader(http.StatusTeapot)
	}))
	answer = httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", http.NoBody)
	request.Header.Set("Tenant", "team-a")
	h.ServeHTTP(answer, request)
	return answer, passed, found
}

func byTenant(r *http.Request) string { return r.Header.Get("Tenant") }

func TestGrantedPasses(t *testing.T) {
	t.Parallel()
	for _, source := range []client.Source{client.Consensus, client.Local} {
		d := &decider{decision: &client.Decision{Granted: true, Source: source}}
		answer, passed, found := serve(t, Config{Decider: d, Request: ByKey("api", byTenant)})
		if !passed || found != d.decision || answer.Code != http.StatusTeapot {
			t.Errorf("%s: passed %t with %+v, answered %d", source, passed, found, answer.Code)
		}
		want := client.Charge{Limit: "api", Key: "team-a", Dimension: "requests", Amount: 1}
		if len(d.asked) != 1 || len(d.asked[0].Charges) != 1 || d.asked[0].Charges[0] != want {
			t.Errorf("asked %+v, want %+v", d.asked, want)
		}
	}
}

func TestWhatIsNotChargedPassesUnasked(t *testing.T) {
	t.Parallel()
	d := &decider{err: errors.New("nobody should ask")}
	_, passed, found := serve(t, Config{
		Decider: d, Request: func(*http.Request) (client.Request, bool) { return client.Request{}, false },
	})
	if !passed || found != nil || len(d.asked) != 0 {
		t.Errorf("passed %t with %+v, asked %v", passed, found, d.asked)
	}
}

func TestDeniedIs429(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		wait time.Duration
		// least and most whole seconds: the hint, and a tenth more.
		least, most int64
	}{
		{"never_zero", time.Millisecond, 1, 1},
		{"one_second_and_its_jitter", time.Second, 1, 2},
		{"rounded_up", 23981 * time.Millisecond, 24, 27},
		{"an_hour", time.Hour, 3600, 3960},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for range 200 {
				answer, passed, _ := serve(t, Config{
					Decider: &decider{decision: denied(c.wait, false)}, Request: ByKey("api", byTenant),
				})
				header := answer.Header()
				after, err := strconv.ParseInt(header.Get("Retry-After"), 10, 64)
				if err != nil || after < c.least || after > c.most {
					t.Fatalf("Retry-After %q, want %d to %d", header.Get("Retry-After"), c.least, c.most)
				}
				if passed || answer.Code != http.StatusTooManyRequests || header.Get("Cache-Control") != "no-store" ||
					header.Get("Content-Type") != "application/problem+json" {
					t.Fatalf("passed %t, %d, %v", passed, answer.Code, header)
				}
				var body Problem
				if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
					t.Fatal(err)
				}
				if body.RetryAfter != after || body.Status != 429 || body.Reason != "RATE" || len(body.Denials) != 2 ||
					body.Denials[0] != (Denial{"api", "requests", "RATE"}) || body.Denials[1].Reason != "RETRY_BUDGET" ||
					strings.Contains(answer.Body.String(), "SECRET") {
					t.Fatalf("body %s", answer.Body)
				}
			}
		})
	}
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		answer, passed, _ := serve(t, Config{
			Decider: &decider{decision: denied(0, true)}, Request: ByKey("api", nil),
		})
		const want = `{"title":"Too Many Requests","status":429,"detail":"No waiting helps.",` +
			`"reason":"RATE","denials":[{"limit":"api","dimension":"requests",` +
			`"reason":"RATE"},{"reason":"RETRY_BUDGET"}]}` + "\n"
		if passed || answer.Header().Get("Retry-After") != "" || answer.Body.String() != want {
			t.Errorf("passed %t, %v, %s", passed, answer.Header(), answer.Body)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	bad := &client.BadRequestError{Field: "charges[0].key", Problem: "too long"}
	cases := []struct {
		name    string
		err     error
		onError func(*http.Request, error) bool
		want    int
		body    string
	}{
		{"a_request_at_fault", bad, nil, 400, `counted: charges[0].key: too long"`},
		{"anything_else_is_not_told", errors.New("SECRET"), nil, 503, "could not be checked against its limit"},
		{"refused_by_choice", client.ErrClosed, func(*http.Request, error) bool { return false }, 503, ""},
		{"passed_by_choice", client.ErrClosed, func(_ *http.Request, err error) bool {
			return errors.Is(err, client.ErrClosed)
		}, http.StatusTeapot, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer, _, found := serve(t, Config{
				Decider: &decider{err: c.err}, Request: ByKey("api", nil), OnError: c.onError,
			})
			if answer.Code != c.want || !strings.Contains(answer.Body.String(), c.body) ||
				strings.Contains(answer.Body.String(), "SECRET") || found != nil {
				t.Errorf("%d %s, want %d %s", answer.Code, answer.Body, c.want, c.body)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	if want := "middleware configuration: decider: missing\nrequest: missing"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
