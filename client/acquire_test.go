package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/failopen"
)

func TestHealthyPath(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		d := w.ask(c, "open", time.Second)
		if !d.Granted || d.Source != client.Consensus || d.Lease.Local {
			t.Fatalf("got %+v, want a grant by consensus", d)
		}
		tracked := w.acquire(c, time.Second, client.Request{
			Track: true, Charges: []client.Charge{charge("share", 60)},
		})
		if !tracked.Granted || !tracked.Lease.Tracked {
			t.Fatalf("got %+v, want a tracked grant", tracked)
		}
		if left := time.Until(tracked.Lease.Ends); left > 4995*time.Millisecond || left < 4900*time.Millisecond {
			t.Errorf("the lease ends in %s, want 5 s less a thousandth", left)
		}
		renewed, err := c.Renew(t.Context(), tracked.Lease, client.Renewal{TTL: 30 * time.Second, Sequence: 1})
		if err != nil || renewed.State != "OPEN" {
			t.Errorf("renew: %+v, %v", renewed, err)
		}
		settled, err := c.Settle(t.Context(), tracked.Lease, client.Usage{Dimension: "requests", Used: 20})
		if err != nil || settled.State != "SETTLED" || settled.Charges[0].Refunded != 40 {
			t.Errorf("settle: %+v, %v; want 40 back", settled, err)
		}
		other := w.acquire(c, time.Second, client.Request{Track: true, Charges: []client.Charge{charge("share", 80)}})
		if !other.Granted {
			t.Fatalf("got %+v, want what was given back", other)
		}
		denied := w.acquire(c, time.Second, client.Request{Charges: []client.Charge{charge("share", 50)}})
		wait, never := denied.RetryAfter()
		if denied.Granted || never || denied.Denials[0].Reason != "RATE" || wait < denied.Denials[0].RetryAfter {
			t.Errorf("got %+v and wait %s, want RATE and no less than the hint", denied, wait)
		}
		if released, err := c.Release(t.Context(), other.Lease); err != nil || released.State != "RELEASED" {
			t.Errorf("release: %+v, %v", released, err)
		}
		if looked, err := c.Peek(t.Context(), "", charge("share", 80)); err != nil || !looked.Granted {
			t.Errorf("peek: %+v, %v", looked, err)
		}
		if s := c.Status(); s.State != failopen.Healthy || s.FailOpen || len(s.Endpoints) != 3 {
			t.Errorf("status %+v", s)
		}
		w.wantAlerts(0, 0)
	})
}

func TestErrorsAreTheCallersOwn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		var bad *client.BadRequestError
		if _, err := c.Acquire(t.Context(), client.Request{}); !errors.As(err, &bad) || bad.Field != "charges" {
			t.Errorf("no charges: %v", err)
		}
		if _, err := c.Acquire(t.Context(), client.Request{Charges: []client.Charge{charge("nosuch", 1)}}); err == nil {
			t.Error("an unknown limit was decided")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		good := client.Request{Charges: []client.Charge{charge("open", 1)}}
		if _, err := c.Acquire(ctx, good); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left: %v", err)
		}
		if s := c.Status(); s.State != failopen.Healthy {
			t.Errorf("status %+v", s)
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if _, err := c.Acquire(t.Context(), good); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestElection: a leader dies, and for 1.5 s nobody can decide.
func TestElection(t *testing.T) {
	t.Run("G8_an_election_pages_nobody_and_fails_nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "closed", time.Second)
			w.NoLeader()
			over := time.AfterFunc(1500*time.Millisecond, func() { w.Serve() })
			defer over.Stop()
			done := make(chan *client.Decision)
			const callers = 20
			for range callers {
				go func() { done <- w.ask(c, "closed", 5*time.Second) }()
				pass(50 * time.Millisecond)
			}
			for range callers {
				if d := <-done; !d.Granted || d.Source == client.Local {
					t.Errorf("got %+v, want a grant by the authority", d)
				}
			}
			w.wantAlerts(0, 0)
		})
	})
}

func TestRepeats(t *testing.T) {
	t.Run("G4_a_tracked_acquire_is_repeated_and_debited_once", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "share", time.Second)
			w.Unknown()
			time.AfterFunc(30*time.Millisecond, func() { w.Serve() })
			d := w.acquire(c, time.Second, client.Request{Track: true, Charges: []client.Charge{charge("share", 60)}})
			if !d.Granted || !d.Repeated || d.Source == client.Local {
				t.Errorf("got %+v, want the same grant again", d)
			}
			looked, err := c.Peek(t.Context(), "", charge("share", 1))
			if err != nil || looked.Remaining[0].Amount < 39 || looked.Remaining[0].Amount > 60 {
				t.Errorf("%+v left (%v), want 39 and what came since: 60 debited once", looked, err)
			}
		})
	})
	t.Run("G4_an_untracked_one_only_where_it_may_be_debited_twice", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(func(c *client.Config) { c.OnceOnly = true })
			defer c.Close()
			w.ask(c, "open", time.Second)
			before := w.Counts().Acquires
			w.Unknown()
			if d := w.ask(c, "open", time.Second); d.Source != client.Local || !d.Granted {
				t.Errorf("got %+v, want an answer of its own", d)
			}
			if n := w.Counts().Acquires - before; n != 1 {
				t.Errorf("asked %d times, want once", n)
			}
			repeating := w.client(nil)
			defer repeating.Close()
			w.Unknown(0)
			w.Serve(1, 2)
			if d := w.ask(repeating, "open", time.Second); d.Source != client.Consensus {
				t.Errorf("got %+v, want an answer of another node", d)
			}
			w.wantAlerts(0, 0)
		})
	})
	t.Run("A13_what_nobody_waits_for_any_more_is_given_back", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			other := w.client(nil)
			defer other.Close()
			w.ask(c, "share", time.Second)
			w.ask(other, "share", time.Second)
			// Granted, but no answer says so: one caller is answered locally, another
			// leaves.
			w.Unknown()
			request := client.Request{Track: true, Charges: []client.Charge{charge("share", 40)}}
			late := w.acquire(c, 200*time.Millisecond, request)
			if late.Source != client.Local {
				t.Errorf("got %+v, want an answer of its own", late)
			}
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, leave)
			d, err := other.Acquire(ctx, request)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %+v, %v; want that its caller left", d, err)
			}
			w.Serve()
			pass(3 * time.Second)
			if _, leases := w.level("share", ""); leases != 0 {
				t.Errorf("%d leases are open 3 s later, want none", leases)
			}
		})
	})
	t.Run("G8_a_hung_node_costs_a_part_of_the_deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Hang(w.Leader())
			for range 3 {
				d := w.acquire(c, time.Second, client.Request{Track: true, Charges: []client.Charge{charge("open", 1)}})
				if !d.Granted || d.Source == client.Local {
					t.Errorf("got %+v, want a grant by another node", d)
				}
			}
			w.wantAlerts(0, 0)
			w.Serve()
		})
	})
}
