package client_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/failopen"
)

// slowly adds limits whose tokens do not come back within a test.
func (w *world) slowly() {
	w.t.Helper()
	err := w.LimitsFile(`
limits:
- {name: slow, rate: {requests: 60/h}, burst: {requests: 100}, max_open: {requests: 100}, lease: 1h,
   on_quorum_loss: closed}
- {name: short, rate: {requests: 1000/s}, burst: {requests: 1000}, lease: 1s, on_quorum_loss: closed}
`)
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestRefundsServeWhoWaits: what comes back while somebody waits is his, and not
// first the authority's.
func TestRefundsServeWhoWaits(t *testing.T) {
	give := map[string]func(*testing.T, *client.Limiter) (back func()){
		"a_permit_is_settled": func(t *testing.T, l *client.Limiter) func() {
			permit, ok := l.Take(100)
			if !ok {
				t.Fatal("nothing was granted")
			}
			return func() { permit.Settle(0) }
		},
		"a_reservation_is_cancelled": func(t *testing.T, l *client.Limiter) func() {
			r := l.ReserveN(100)
			if !r.OK() || r.Delay() != 0 {
				t.Fatalf("ok %v, delay %s", r.OK(), r.Delay())
			}
			return r.Cancel
		},
	}
	for name, take := range give {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.slowly()
				c, l := w.limiter(client.LimiterConfig{Limit: "slow"})
				defer c.Close()
				back := take(t, l)
				done := make(chan error)
				go func() { done <- l.WaitN(t.Context(), 50) }()
				pass(time.Second)
				began := time.Now()
				back()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("waited %s for tokens that are held", took)
				}
			})
		})
	}
}

// TestSettledTwice: a permit that is settled twice by mistake makes no tokens.
func TestSettledTwice(t *testing.T) {
	t.Run("G2", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.slowly()
			c, l := w.limiter(client.LimiterConfig{Limit: "slow"})
			defer c.Close()
			permit, ok := l.Take(100)
			if !ok {
				t.Fatal("nothing was granted")
			}
			permit.Settle(0)
			permit.Settle(0)
			spent := 0
			for spent < 1000 && l.Allow() {
				spent++
			}
			if spent > 101 {
				t.Errorf("%d tokens spent of 100", spent)
			}
		})
	})
}

// TestTooMuchForAnybody: a caller who asks for more than there can be is refused,
// and nobody else is.
func TestTooMuchForAnybody(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, l := w.limiter(client.LimiterConfig{Limit: "open", Key: "k"})
		defer c.Close()
		var denied *client.DeniedError
		if err := l.WaitN(t.Context(), math.MaxInt); !errors.As(err, &denied) || !denied.Never {
			t.Errorf("wait: got %v, want never", err)
		}
		if r := l.ReserveN(math.MaxInt); r.OK() {
			t.Error("more than there can be was reserved")
		}
		if l.AllowN(math.MaxInt) {
			t.Error("more than there can be was allowed")
		}
		if !l.Allow() {
			t.Error("everybody else is refused for it")
		}
		for _, n := range []int{0, -1, math.MinInt} {
			if r := l.ReserveN(n); !l.AllowN(n) || l.WaitN(t.Context(), n) != nil || !r.OK() || r.Delay() != 0 {
				t.Errorf("%d tokens were refused", n)
			}
		}
	})
}

// TestReservedWithoutAnAnswer: where nobody says how long the line is the hint
// that is known counts, not "now".
func TestReservedWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly()
		c, l := w.limiter(client.LimiterConfig{Limit: "slow"})
		defer c.Close()
		for l.Allow() {
			pass(time.Microsecond)
		}
		w.Hang()
		if r := l.Reserve(); r.OK() && r.Delay() < 50*time.Second {
			t.Errorf("a token a minute, and the next one after %s", r.Delay())
		}
		w.Serve()
	})
}

// TestLostLongerThanALease: a question that is answered when its lease has ended
// is asked anew, and nobody is told that leases are too short.
func TestLostLongerThanALease(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.slowly()
			c, l := w.limiter(client.LimiterConfig{Limit: "short"})
			defer c.Close()
			w.ask(c, "short", time.Second)
			w.Unknown()
			time.AfterFunc(1500*time.Millisecond, func() { w.Serve() })
			if err := l.Wait(t.Context()); err != nil {
				t.Errorf("after an election: %v", err)
			}
			if !l.Allow() {
				t.Error("refused after an election")
			}
		})
	})
}

// TestHastyClient: callers in a hurry are no reason to fetch blocks in a hurry.
func TestHastyClient(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.client(func(c *client.Config) {
			c.Deadline, c.Fallback.Mode = time.Millisecond, failopen.Closed
		})
		defer c.Close()
		l, err := c.Limiter(client.LimiterConfig{Limit: "closed"})
		if err != nil {
			t.Fatal(err)
		}
		w.Delay(5 * time.Millisecond)
		l.Allow()
		pass(100 * time.Millisecond)
		if !l.Allow() {
			t.Error("no block has arrived in 100 ms, at 5 ms an answer")
		}
	})
}
