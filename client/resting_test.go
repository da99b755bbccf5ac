package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// apart is a client that has all of "share", which is 100/s, and whom nobody answers any
// more. It has used up what it had at once.
func (w *world) apart() *client.Client {
	w.t.Helper()
	c := w.client(nil)
	w.ask(c, "share", time.Second)
	w.shared("share", 1)
	w.NoQuorum()
	w.away(c)
	for w.ask(c, "share", time.Second).Granted {
	}
	return c
}

// waits asks for so many of "share" with a place in the queue.
func waits(ctx context.Context, c *client.Client, amount int64, most time.Duration) (*client.Decision, error) {
	return c.Acquire(ctx, client.Request{Track: true, MaxWait: most, Charges: []client.Charge{charge("share", amount)}})
}

// TestRestingAlone: who may wait waits also while nobody answers, for the client's share.
func TestRestingAlone(t *testing.T) {
	t.Run("G8_all_are_served_at_the_share_s_rate", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.apart()
			defer c.Close()
			began := time.Now()
			var joined sync.WaitGroup
			for range 300 {
				joined.Go(func() {
					d, err := waits(t.Context(), c, 1, 10*time.Second)
					if err != nil || !d.Granted || d.Source != client.Local || !d.Lease.Local {
						t.Errorf("%+v, %v; want a grant of its own", d, err)
					}
				})
			}
			joined.Wait()
			if took := time.Since(began); took < 2990*time.Millisecond || took > 4*time.Second {
				t.Errorf("300 at 100/s took %v", took)
			}
		})
	})
	t.Run("G8_who_would_wait_too_long_is_refused_at_once", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.apart()
			defer c.Close()
			for _, most := range []time.Duration{0, 200 * time.Millisecond} {
				began := time.Now()
				d, err := waits(t.Context(), c, 50, most)
				if err != nil || d.Granted || d.Denials[0].Reason != "RATE" || d.Denials[0].RetryAfter < 400*time.Millisecond {
					t.Errorf("%+v, %v; want a refusal with a hint of half a second", d, err)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("refused after %v", took)
				}
			}
		})
	})
	t.Run("the_authority_is_asked_when_it_is_back", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.apart()
			defer c.Close()
			answered := make(chan *client.Decision)
			go func() {
				d, err := waits(t.Context(), c, 99, time.Minute)
				if err != nil {
					t.Error(err)
				}
				answered <- d
			}()
			// Others leave it nothing.
			stop := make(chan struct{})
			go func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(10 * time.Millisecond):
						_, _ = waits(t.Context(), c, 1, 0)
					}
				}
			}()
			pass(20 * time.Second)
			close(stop)
			w.Serve()
			if d := <-answered; !d.Granted || d.Source == client.Local {
				t.Errorf("%+v, want the authority's grant", d)
			}
		})
	})
	t.Run("who_leaves_and_who_closes", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.apart()
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, leave)
			if d, err := waits(ctx, c, 90, time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v; want that its caller left", d, err)
			}
			time.AfterFunc(100*time.Millisecond, func() { c.Close() })
			if d, err := waits(t.Context(), c, 100, time.Minute); !errors.Is(err, client.ErrClosed) {
				t.Errorf("%+v, %v; want that it is closed", d, err)
			}
		})
	})
}
