package front

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// world is a gateway of three nodes in memory, in virtual time.
type world struct {
	*gateway.Gateway
	t *testing.T
	// sent is how many requests reached the provider, by what they say of themselves.
	sent map[string]int
}

// RoundTrip is the provider, which answers at once.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.sent[r.Header.Get("X-Trace")]++
	const body = `{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":7}}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}, nil
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := clienttest.New(nodes)
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		if err := cluster.LimitsFile(limits); err != nil {
			t.Fatal(err)
		}
		authority, err := client.New(client.Config{
			Endpoints: cluster.Endpoints(), Client: "gateway", Dial: cluster.Dial, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer authority.Close()
		book, err := who.New(who.Config{Loopback: true})
		if err != nil {
			t.Fatal(err)
		}
		table, err := provider.Named(provider.NameOpenAI)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, sent: map[string]int{}}
		if w.Gateway, err = gateway.New(gateway.Config{
			Authority: authority, Who: book, Transport: w, Logger: slog.New(slog.DiscardHandler),
			Deployments: []gateway.Deployment{{
				Name: plain, Provider: table, Upstream: &url.URL{Scheme: "https", Host: "api.example"},
			}},
		}); err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		f(t, w)
	})
}

// ask sends what a client asks, its retry number said.
func (w *world) ask(name, retry string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://localhost/v1/chat/completions",
		bytes.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("X-Client-Id", name)
	r.Header.Set("X-Trace", name)
	r.Header.Set("X-Stainless-Retry-Count", retry)
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// alive is what is on the heap when nothing is left on it that is not used.
func alive() (live, ever uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.TotalAlloc
}

// retry has the client that storms ask again, and be refused.
func (w *world) retry(body []byte) {
	w.t.Helper()
	got := w.ask("storm", "1", body)
	if got.Code != http.StatusTooManyRequests || got.Header().Get("X-Retry-Budget-Exceeded") != "true" {
		w.t.Fatalf("%d %v %s, want a refusal for retries", got.Code, got.Header(), got.Body)
	}
}

const (
	// perRefusal and perStorm are how many bytes a refusal may take for a moment, the
	// program's side of it included, and all of them together for good.
	perRefusal, perStorm = 32 << 10, 1 << 20
	// minute is how many calls a storm has in one.
	minute = 12_000
)

// TestStorm: who retries without end is refused by one gateway alone, which neither asks
// anybody nor keeps anything for it, and answers others meanwhile.
func TestStorm(t *testing.T) {
	t.Run("S1-03_12000_retries_a_minute_are_refused_by_one_gateway", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			same := chat(plain)(nil)
			for i := 0; w.ask("storm", "1", same).Code == http.StatusOK; i++ {
				if i == 1000 {
					t.Fatal("a thousand retries were let through")
				}
				w.ask("calm", "0", chat(plain)(nil))
				pass(10 * time.Millisecond)
			}
			w.storms(same, minute/10)
			sent, asked := w.sent["storm"], w.Stats().Charges.Asked
			live, ever := alive()
			w.storms(same, minute)
			lives, evers := alive()
			s := w.Stats()
			if w.sent["storm"] != sent {
				t.Errorf("%d refused calls reached the provider", w.sent["storm"]-sent)
			}
			if each := (evers - ever) / minute; each > perRefusal {
				t.Errorf("a refusal takes %d bytes, want at most %d", each, perRefusal)
			}
			if lives > live+perStorm {
				t.Errorf("%d bytes are kept for %d refusals", lives-live, minute)
			}
			// Others ask now and then what is charged for theirs.
			if n := s.Charges.Asked - asked; n > minute/1000 {
				t.Errorf("%d refusals have asked the nodes %d times", minute, n)
			}
		})
	})
}

// storms refuses so many retries at 200 a second, and serves others meanwhile.
func (w *world) storms(same []byte, calls int) {
	w.t.Helper()
	for i := range calls {
		w.retry(same)
		if i%20 == 0 {
			if got := w.ask("calm", "0", chat(plain)(nil)); got.Code != http.StatusOK {
				w.t.Fatalf("somebody else got %d %s", got.Code, got.Body)
			}
		}
		pass(5 * time.Millisecond)
	}
}
