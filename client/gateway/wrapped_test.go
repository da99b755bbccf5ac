package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/httpwrap"
)

// warming is a provider that serves two requests a second until it is warm, and sixty from
// then on. Whom it refuses it asks to wait for five seconds.
type warming struct {
	warm time.Time

	mu      sync.Mutex
	left    float64   // guarded by mu
	last    time.Time // guarded by mu
	refused int       // guarded by mu
	firstNo time.Time // guarded by mu
}

func (p *warming) answer(r *http.Request) *http.Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, rate := time.Now(), 2.0
	if now.After(p.warm) {
		rate = 60
	}
	p.left = min(rate, p.left+rate*now.Sub(p.last).Seconds())
	p.last = now
	if p.left >= 1 {
		p.left--
		return fine(r)
	}
	p.refused++
	if p.firstNo.IsZero() {
		p.firstNo = now
	}
	return busy("5")(r)
}

// batch is a job of many workers. It sends through a gateway, in the wrapper.
type batch struct {
	world *world

	mu              sync.Mutex
	sent            map[string]int // guarded by mu
	served, refused int            // guarded by mu
	lastNo          time.Time      // guarded by mu
}

// RoundTrip asks the gateway.
func (b *batch) RoundTrip(r *http.Request) (*http.Response, error) {
	r.RemoteAddr = "127.0.0.1:1234"
	answer := b.world.serve(r).Result()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[r.Header.Get("X-Piece")]++
	if answer.StatusCode == http.StatusOK {
		b.served++
	} else {
		b.refused++
		b.lastNo = time.Now()
	}
	return answer, nil
}

// run lets workers ask for one piece of work after another until then.
func (b *batch) run(t *testing.T, workers int, end time.Time) {
	t.Helper()
	wrapped, err := httpwrap.New(httpwrap.Config{Base: b})
	if err != nil {
		t.Fatal(err)
	}
	var joined sync.WaitGroup
	for worker := range workers {
		joined.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				piece := fmt.Sprint(worker, " ", n)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+chat,
					strings.NewReader(prompt(piece)))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header = http.Header{
					"Content-Type": {"application/json"}, "X-Client-Id": {"batch-scorer"}, "X-Piece": {piece},
				}
				answer, err := wrapped.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				_ = answer.Body.Close()
				pass(time.Second)
			}
		})
	}
	joined.Wait()
}

// TestAWrappedClient: a batch job that asks again as it is told, while a provider warms up.
func TestAWrappedClient(t *testing.T) {
	t.Run("S1-43_the_storm_never_forms", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, w *world) {
			const workers, warmth, quiet = 33, 30 * time.Second, 55 * time.Second
			began := time.Now()
			p := &warming{warm: began.Add(warmth), last: began}
			w.answer = p.answer
			b := &batch{world: w, sent: make(map[string]int)}
			b.run(t, workers, began.Add(3*time.Minute))
			took := b.lastNo.Sub(p.firstNo)
			t.Logf("%d served, %d refused, %d times by the provider; quiet after %s", b.served, b.refused, p.refused, took)
			for piece, n := range b.sent {
				if n > 3 {
					t.Errorf("piece %s was sent %d times", piece, n)
				}
			}
			// Each worker is refused a few times at most, where it would be nine times a second.
			if p.refused < 1 || p.refused > 2*workers || b.refused > 12*workers {
				t.Errorf("%d refused by the provider, %d in all", p.refused, b.refused)
			}
			if took > quiet {
				t.Errorf("quiet %s after the first refusal, want %s", took, quiet)
			}
			if rate := float64(b.served) / (3*time.Minute - quiet).Seconds(); rate < workers/2 {
				t.Errorf("%.1f a second are served", rate)
			}
		})
	})
}
