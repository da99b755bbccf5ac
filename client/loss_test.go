package client_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/failopen"
)

// offer asks once every so often for d, and counts grants and local answers.
func (w *world) offer(c *client.Client, limit string, every, d time.Duration) (granted, local int) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pass(every) {
		answer := w.ask(c, limit, time.Second)
		if answer.Granted {
			granted++
		}
		if answer.Source == client.Local {
			local++
		}
	}
	return granted, local
}

func TestQuorumLoss(t *testing.T) {
	t.Run("A20_loud_bounded_and_over_when_it_is_over", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.offer(c, "open", 10*time.Millisecond, time.Second)
			w.NoQuorum()
			w.wantAlerts(0, 0)
			if granted, _ := w.offer(c, "open", 10*time.Millisecond, time.Second); granted < 90 {
				t.Errorf("%d granted in the first second, want all", granted)
			}
			w.wantAlerts(1, 0)
			if s := c.Status(); !s.FailOpen || s.Incident.Number != 1 {
				t.Errorf("status %+v", s)
			}
			granted, local := w.offer(c, "open", 10*time.Millisecond, 10*time.Second)
			if granted != local || local < 990 {
				t.Errorf("%d granted, %d of them local; want 1000 of both", granted, local)
			}
			w.Serve()
			pass(2 * time.Second)
			if d := w.ask(c, "open", time.Second); d.Source == client.Local {
				t.Errorf("two seconds after the quorum is back: %+v", d)
			}
			w.wantAlerts(1, 1)
			over := w.raised()[1]
			var admitted int64
			for _, total := range c.Status().Admitted {
				admitted += total.Tokens
			}
			if admitted == 0 || over.Values["tokens open/requests"] == "" || over.ID != w.raised()[0].ID {
				t.Errorf("%d admitted; the end says %+v", admitted, over)
			}
			pass(time.Second)
			if got, sessions := w.reported("open", "tenant-1"); got != admitted || sessions != 1 {
				t.Errorf("T35: %d tokens of %d sessions booked, want %d of 1", got, sessions, admitted)
			}
			pass(time.Minute)
			if got, _ := w.reported("open", "tenant-1"); got != admitted {
				t.Errorf("T35: a minute later %d tokens booked, want %d", got, admitted)
			}
		})
	})
	t.Run("T35_a_second_incident_is_booked_on_top", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			for i := range 3 {
				w.ask(c, "open", time.Second)
				w.Down()
				w.offer(c, "open", 20*time.Millisecond, 5*time.Second)
				if err := w.Up(); err != nil {
					t.Fatal(err)
				}
				pass(4 * time.Second)
				w.wantAlerts(i+1, i+1)
				admitted := c.Status().Admitted[0].Tokens
				if got, _ := w.reported("open", "tenant-1"); got != admitted || admitted == 0 {
					t.Errorf("after incident %d: %d tokens booked, want %d", i+1, got, admitted)
				}
			}
		})
	})
	t.Run("A20_closed_refuses_and_answers", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "closed", time.Second)
			w.NoQuorum()
			d := w.ask(c, "closed", time.Second)
			if d.Granted || d.Source != client.Local || d.Denials[0].Reason != "LOCAL_CLOSED" {
				t.Errorf("got %+v, want a local refusal", d)
			}
			if wait, never := d.RetryAfter(); never || wait <= 0 {
				t.Errorf("come back after %s, never %v", wait, never)
			}
			w.Serve()
		})
	})
}

func TestALeaderAlone(t *testing.T) {
	t.Run("a_leader_alone_is_no_lost_quorum", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.offer(c, "closed", 5*time.Millisecond, time.Second)
			// It is cut off from the others, who elect another one meanwhile, and its callers
			// from nobody.
			w.NoQuorum(0)
			w.NoLeader(1, 2)
			time.AfterFunc(time.Second/2, func() { w.Serve(1, 2) })
			var asking sync.WaitGroup
			for range 400 {
				pass(5 * time.Millisecond)
				asking.Go(func() {
					if d := w.ask(c, "closed", time.Second); d.Source == client.Local {
						w.t.Errorf("decided by itself: %+v", d.Denials)
					}
				})
			}
			asking.Wait()
			w.wantAlerts(0, 0)
		})
	})
}

func TestAShare(t *testing.T) {
	t.Run("T34_a_share_is_paced_from_an_empty_bucket", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "share", time.Second)
			defer w.fourth("share")()
			w.NoQuorum()
			for w.ask(c, "share", time.Second); !c.Status().FailOpen; pass(time.Millisecond) {
			}
			// A20: 25 + 25 × 60 at most; the bucket begins empty (T34).
			if granted, _ := w.offer(c, "share", 4*time.Millisecond, time.Minute); granted < 1490 || granted > 1500 {
				t.Errorf("%d granted in a minute, want a quarter of 100/s", granted)
			}
			w.Serve()
		})
	})
}

func TestSlowAuthority(t *testing.T) {
	t.Run("A20_slow_is_away_for_that_call_and_does_not_flap", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Delay(300 * time.Millisecond)
			if d := w.ask(c, "open", 200*time.Millisecond); d.Source != client.Local || !d.Granted {
				t.Errorf("got %+v, want its own answer", d)
			}
			if c.Status().FailOpen {
				t.Error("away after one slow answer")
			}
			for range 300 {
				w.ask(c, "open", 200*time.Millisecond)
				pass(100 * time.Millisecond)
			}
			w.wantAlerts(1, 0)
			w.Delay(0)
			pass(2 * time.Second)
			w.wantAlerts(1, 1)
			if d := w.ask(c, "open", 200*time.Millisecond); d.Source == client.Local {
				t.Errorf("got %+v, want an answer of the authority", d)
			}
		})
	})
}

func TestCallersOfManyKinds(t *testing.T) {
	t.Run("G8_an_impatient_caller_says_nothing_about_the_authority", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Delay(30 * time.Millisecond)
			for range 100 {
				w.ask(c, "open", 5*time.Millisecond)
			}
			w.wantAlerts(0, 0)
			w.Hang()
			for range 200 {
				w.ask(c, "open", 5*time.Millisecond)
				pass(45 * time.Millisecond)
			}
			w.wantAlerts(1, 0)
			w.Serve()
		})
	})
	t.Run("A20_one_hasty_caller_does_not_keep_the_client_away", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Hang()
			for range 10 {
				w.ask(c, "open", 60*time.Millisecond)
				w.ask(c, "open", 400*time.Millisecond)
			}
			// It answers, more slowly than the hasty one waits and soon enough for the
			// other.
			w.Delay(100 * time.Millisecond)
			w.Serve()
			pass(3 * time.Second)
			if d := w.ask(c, "open", 400*time.Millisecond); d.Source == client.Local {
				t.Errorf("got %+v, want an answer of the authority", d)
			}
			w.Delay(0)
		})
	})
	t.Run("G8_one_pause_is_one_miss_however_many_wait", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Hang()
			var callers sync.WaitGroup
			for range 100 {
				callers.Go(func() { w.ask(c, "open", 150*time.Millisecond) })
			}
			callers.Wait()
			if c.Status().FailOpen {
				t.Error("away because a hundred callers waited side by side")
			}
			w.Serve()
		})
	})
	t.Run("G8_a_leader_that_hangs_until_the_next_is_elected_alerts_nobody", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Hang()
			// The callers are answered by themselves, soon without waiting.
			if granted, _ := w.offer(c, "open", 10*time.Millisecond, 1500*time.Millisecond); granted == 0 {
				t.Error("nothing was granted")
			}
			w.Serve()
			pass(10 * time.Second)
			w.wantAlerts(0, 0)
			total := c.Status().Admitted[0].Tokens
			if got, _ := w.reported("open", "tenant-1"); got != total || total == 0 {
				t.Errorf("%d tokens booked, want %d", got, total)
			}
		})
	})
}

func TestColdStart(t *testing.T) {
	t.Run("A20_a_client_that_starts_alone_has_static_rules_and_says_so_once", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.Down()
			c := w.client(func(c *client.Config) {
				c.Fallbacks = []failopen.Fallback{{Limit: "closed", Mode: failopen.Closed}}
			})
			defer c.Close()
			for range 100 {
				if d := w.ask(c, "open", time.Second); !d.Granted || d.Source != client.Local {
					t.Fatalf("got %+v, want a local grant", d)
				}
				if d := w.ask(c, "closed", time.Second); d.Granted {
					t.Fatalf("got %+v, want a refusal by the static rule", d)
				}
				pass(100 * time.Millisecond)
			}
			w.wantAlerts(1, 0)
			if got := w.raised()[0].Labels["rules"]; got != "static" {
				t.Errorf("the alert says rules %q, want static", got)
			}
			if err := w.Up(); err != nil {
				t.Fatal(err)
			}
			pass(3 * time.Second)
			w.wantAlerts(1, 1)
			if d := w.ask(c, "closed", time.Second); d.Source == client.Local {
				t.Errorf("got %+v, want the authority's answer", d)
			}
		})
	})
	t.Run("G8_an_idle_client_notices", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "open", time.Second)
			w.Down()
			pass(2 * time.Second)
			w.wantAlerts(1, 0)
		})
	})
}

// Who asks a node that has hung waits for it for half a second, however long the caller's
// patience; who asks one that is busy waits.
func TestAHungNodeIsLeft(t *testing.T) {
	ask := func(t *testing.T, w *world, c *client.Client) time.Duration {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		began := time.Now()
		d, err := c.Acquire(ctx, client.Request{Track: true, Charges: []client.Charge{
			{Limit: "closed", Dimension: "requests", Amount: 1},
		}})
		if err != nil || !d.Granted || d.Source == client.Local {
			t.Errorf("got %+v, %v", d, err)
		}
		return time.Since(began)
	}
	t.Run("hung", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			ask(t, w, c)
			w.Freeze(0)
			if took := ask(t, w, c); took > 600*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		})
	})
	t.Run("busy", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			ask(t, w, c)
			before := w.Counts().Acquires
			w.Delay(1500 * time.Millisecond)
			var asking sync.WaitGroup
			for range 20 {
				pass(100 * time.Millisecond)
				asking.Go(func() { ask(t, w, c) })
			}
			asking.Wait()
			// The first ones see nobody answered for half a second.
			if n := w.Counts().Acquires - before; n > 20+15 {
				t.Errorf("20 questions were asked %d times", n)
			}
		})
	})
}
