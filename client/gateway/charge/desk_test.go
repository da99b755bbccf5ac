package charge_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/charge"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := charge.New(charge.Config{Plans: 1, PlanLife: time.Hour, Busy: -1, Workers: 1000})
	if err == nil {
		t.Fatal("a bad configuration is taken")
	}
	for _, want := range []string{"authority: missing", "plans: 1,", "plan life: 1h0m0s,", "busy: -1,", "workers: 1000,"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestAllOrNothing: where one limit has not enough nothing is taken of the others, and the
// authority's queue decides (G3).
func TestAllOrNothing(t *testing.T) {
	narrow := func(wait time.Duration) charge.Work {
		work := call("a", 10)
		work.Attributes["narrow"], work.MaxWait = "n", wait
		return work
	}
	t.Run("S1-16_what_a_refused_call_took_goes_back", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			granted, denied := 0, 0
			for range 3000 {
				c, decision, err := d.Take(t.Context(), narrow(0))
				switch {
				case err != nil:
					t.Fatal(err)
				case c == nil:
					if decision.Denials[0].Limit != "narrow" || decision.Denials[0].RetryAfter <= 0 {
						t.Fatalf("%+v, want a denial of the narrow limit", decision)
					}
					denied++
				default:
					c.Settle(nil)
					granted++
				}
				pass(2 * time.Millisecond)
			}
			if granted < 60 || granted > 75 || denied < 2900 {
				t.Errorf("%d granted and %d denied in 6 s, want 10 + 10/s", granted, denied)
			}
			_ = d.Close()
			levels, leases := w.level("tenant", "a")
			if levels["tokens"] != 100_000 || levels["requests"] != 1000 || leases != 0 {
				// They have refilled what was granted, and lost nothing to what was refused.
				t.Errorf("the tenant has %v and %d leases open", levels, leases)
			}
		})
	})
	t.Run("S3-44_the_refused_wait_in_the_queue", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			began := time.Now()
			for range 50 {
				w.take(d, narrow(10*time.Second)).Settle(nil)
			}
			if took := time.Since(began); took < 3500*time.Millisecond || took > 8*time.Second {
				t.Errorf("fifty calls at 10/s after ten at once took %s", took)
			}
		})
	})
	t.Run("a_limit_that_always_refuses_is_left_alone", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(func(c *charge.Config) { c.Busy = 1 })
			w.limits(`limits: [{name: none, match: {none: "*"}, rate: {requests: 0/s}, burst: {requests: 1}}]`)
			work := charge.Work{Attributes: map[string]string{"none": "x"}}
			w.take(d, work)
			asked, acquires := w.asked.Load(), w.Counts().Acquires
			for range 5000 {
				w.denied(d, work)
				pass(time.Millisecond)
			}
			if n := int64(w.Counts().Acquires-acquires) - (w.asked.Load() - asked); n > 20 {
				t.Errorf("%d blocks were asked for in 5 s of refusals", n)
			}
		})
	})
}

// TestQuorumLost: while nobody answers the client decides, as it does for any call.
func TestQuorumLost(t *testing.T) {
	t.Run("S1-35", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("a", 10))
			w.Down()
			began := time.Now()
			for time.Since(began) < 10*time.Second {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				c, decision, err := d.Take(ctx, call("a", 10))
				cancel()
				if err != nil || c == nil {
					t.Fatalf("after %s: %+v, %v", time.Since(began), decision, err)
				}
				c.Settle(nil)
				pass(10 * time.Millisecond)
			}
			if !w.FailOpen() {
				t.Error("the client believes in an authority that is down")
			}
			learned := d.Stats().Learned
			w.take(d, call("stranger", 10)).Settle(nil)
			if n := d.Stats().Learned - learned; n != 0 {
				t.Error("a plan was made of what the client has decided by itself")
			}
			if s := d.Stats(); s.Local == 0 || s.Leases != 0 {
				t.Errorf("%+v, want local decisions", s)
			}
			if err := w.Up(); err != nil {
				t.Fatal(err)
			}
			pass(10 * time.Second)
			w.warm(d, call("a", 10))
		})
	})
}

// TestUnanswered: a block that nobody grants in time leaves the decision to the client, and
// the next calls to whoever answers.
func TestUnanswered(t *testing.T) {
	t.Run("G8_S1-35", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			for range 200 {
				w.take(d, call("a", 10)).Settle(nil)
				pass(5 * time.Millisecond)
			}
			w.Hang()
			var longest time.Duration
			sources := map[client.Source]int{}
			for range 3000 {
				began := time.Now()
				c, decision, err := d.Take(t.Context(), call("a", 1000))
				if err != nil || c == nil {
					t.Fatalf("%+v, %v", decision, err)
				}
				longest = max(longest, time.Since(began))
				sources[decision.Source]++
				c.Settle(nil)
				pass(time.Millisecond)
			}
			if longest > 1200*time.Millisecond {
				t.Errorf("a call took %s", longest)
			}
			if sources[client.Local] < 1000 || sources[client.Escrow] == 0 {
				t.Errorf("decided by %v, want what is held first and then the client", sources)
			}
			w.Serve()
		})
	})
}
