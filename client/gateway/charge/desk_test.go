package charge_test

import (
	"context"
	"errors"
	"strings"
	"sync"
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

// TestPlans: what calls are charged is learned once, and then nobody is asked for each.
func TestPlans(t *testing.T) {
	t.Run("S1-32_a_busy_tenant's_calls_ask_nobody", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("a", 100))
			asked, acquires, before := w.asked.Load(), w.Counts().Acquires, d.Stats().Permits
			const calls = 4000
			for range calls {
				w.take(d, call("a", 100)).Settle(nil)
				pass(2 * time.Millisecond)
			}
			s := d.Stats()
			if n := s.Permits - before; n < calls*99/100 {
				t.Errorf("%d of %d calls were paid from what is held: %+v", n, calls, s)
			}
			if n := w.asked.Load() - asked; n > calls/100 {
				t.Errorf("asked by attributes %d times in 8 s", n)
			}
			// Four limits and dimensions have a block of a few seconds each.
			if n := w.Counts().Acquires - acquires; n > 100 {
				t.Errorf("%d acquires of %d calls", n, calls)
			}
			if s.Plans != 1 || s.Limiters != 4 || s.Leases != 0 {
				t.Errorf("%+v, want one plan of four limiters, and no lease", s)
			}
		})
	})
	t.Run("S3-38_a_rare_one's_hold_nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			for range 10 {
				w.take(d, call("a", 100)).Settle(map[string]int64{"tokens": 40})
				pass(3 * time.Second)
			}
			pass(time.Second)
			if s := d.Stats(); s.Asked != 10 || s.Limiters != 0 || s.Settled != 10 {
				t.Errorf("%+v, want that each call asks, once", s)
			}
			if n := w.Counts(); n.Acquires != 10 {
				t.Errorf("%+v, want an acquire for each call", n)
			}
		})
	})
}

// TestPlansEnd: limits change, and what is remembered of them is not believed for long.
func TestPlansEnd(t *testing.T) {
	t.Run("S3-13_new_limits_count_after_a_plan's_life", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("a", 1))
			learned := d.Stats().Learned
			w.limits(`limits: [{name: added, match: {tenant: a}, rate: {requests: 0/s}, burst: {requests: 1}}]`)
			began, granted := time.Now(), 0
			for {
				c, decision, err := d.Take(t.Context(), call("a", 1))
				if err != nil {
					t.Fatal(err)
				}
				if c == nil {
					if decision.Denials[0].Limit != "added" {
						t.Fatalf("%+v, want a denial of the new limit", decision)
					}
					break
				}
				c.Settle(nil)
				granted++
				pass(10 * time.Millisecond)
				if time.Since(began) > 25*time.Second {
					t.Fatalf("%d calls after 25 s, and the new limit does not count", granted)
				}
			}
			if took := time.Since(began); took > 21*time.Second {
				t.Errorf("the new limit counts after %s, want twice the life of a plan at most", took)
			}
			if n := d.Stats().Learned - learned; n != 1 {
				t.Errorf("learned %d times, want once: by the call that is the new limit's only one", n)
			}
		})
	})
	t.Run("one_call_asks_anew_and_the_others_go_on", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("a", 1))
			for learned := d.Stats().Learned; d.Stats().Learned == learned; pass(10 * time.Millisecond) {
				w.take(d, call("a", 1)).Settle(nil)
			}
			for range 950 {
				w.take(d, call("a", 1)).Settle(nil)
				pass(10 * time.Millisecond)
			}
			w.Delay(300 * time.Millisecond)
			asked, learned := w.asked.Load(), d.Stats().Learned
			var calls sync.WaitGroup
			for range 100 {
				calls.Go(func() { w.take(d, call("a", 1)).Settle(nil) })
				pass(10 * time.Millisecond)
			}
			calls.Wait()
			if n := w.asked.Load() - asked; n != 1 || d.Stats().Learned != learned+1 {
				t.Errorf("%d calls asked by attributes, want one", n)
			}
		})
	})
	t.Run("a_plan_that_turns_out_to_be_wrong_is_forgotten", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("a", 1))
			pass(11 * time.Second)
			gone := errors.New("no limit fits")
			w.acquire = func(client.Request) (*client.Decision, error) { return nil, gone }
			if _, _, err := d.Take(t.Context(), call("a", 1)); !errors.Is(err, gone) {
				t.Errorf("%v, want the authority's error", err)
			}
			if s := d.Stats(); s.Plans != 0 {
				t.Errorf("%+v, want no plan", s)
			}
		})
	})
	t.Run("S3-13_what_fits_no_limit_any_more_is_an_error", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			work := charge.Work{Attributes: map[string]string{"nobody": "knows"}}
			if c, _, err := d.Take(t.Context(), work); err == nil || c != nil {
				t.Errorf("%v, %v, want that no limit fits", c, err)
			}
			if s := d.Stats(); s.Plans != 0 {
				t.Errorf("%+v, want nothing remembered", s)
			}
		})
	})
	t.Run("S2-03_plans_are_told_apart_by_all_that_is_said", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			works := []charge.Work{call("a", 1), call("b", 1), call("a", 1), call("a", 1), call("a", 1)}
			works[2].Client = "other"
			works[3].Attributes = map[string]string{"tenant": "d", "deployment": "a"}
			works[4].Amounts = map[string]int64{"requests": 1}
			for _, work := range works {
				w.take(d, work).Settle(nil)
			}
			if s := d.Stats(); s.Plans != len(works) {
				t.Errorf("%d plans, want %d", s.Plans, len(works))
			}
		})
	})
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

// TestAmounts: what was estimated is settled with what was used.
func TestAmounts(t *testing.T) {
	t.Run("S3-09_a_refund_pays_for_others", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			// By its estimates alone a tenth of that would pass.
			for range 5000 {
				c := w.take(d, call("a", 1000))
				pass(2 * time.Millisecond)
				c.Settle(map[string]int64{"tokens": 100, "unknown": 5})
				c.Settle(map[string]int64{"tokens": 1000})
				c.Release()
			}
			if s := d.Stats(); s.Permits < 4000 || s.Late != 0 {
				t.Errorf("%+v, want most of it paid from what is held", s)
			}
		})
	})
	t.Run("refunds_that_come_too_late_are_counted", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("a", 1000))
			c := w.take(d, call("a", 1000))
			pass(6 * time.Second)
			c.Settle(map[string]int64{"tokens": 100})
			if s := d.Stats(); s.Late != 1800 {
				t.Errorf("%d tokens came too late, want 900 of each of two limits", s.Late)
			}
		})
	})
	t.Run("bad_amounts_are_refused_as_by_an_acquire", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("a", 10))
			for _, n := range []int64{0, -1, 1<<53 + 1} {
				var bad *client.BadRequestError
				if _, _, err := d.Take(t.Context(), call("a", n)); !errors.As(err, &bad) || bad.Field != "amounts.tokens" {
					t.Errorf("%d tokens: %v, want an error that names them", n, err)
				}
			}
			if decision := w.denied(d, call("a", 200_000)); decision.Denials[0].Reason != "EXCEEDS_BURST" {
				t.Errorf("%+v, want that it never fits", decision)
			}
			if before := d.Stats().Permits; before > 0 {
				pass(time.Second)
				w.warm(d, call("a", 10))
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

// TestThrottled: what is held is not spent on a provider that has just refused.
func TestThrottled(t *testing.T) {
	t.Run("S1-05", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			for name, one := range map[string]charge.Work{"held": call("a", 10), "asked": slotted(0)} {
				w.warm(d, call("a", 10))
				w.warm(d, call("b", 10))
				c := w.take(d, one)
				c.Throttled(0)
				w.take(d, call("b", 10)).Settle(nil)
				began, before := time.Now(), d.Stats()
				c.Settle(map[string]int64{"tokens": 0})
				c.Throttled(22 * time.Second)
				for time.Since(began) < 21900*time.Millisecond {
					// Another tenant's calls of the same deployment.
					w.take(d, call("b", 10)).Settle(nil)
					pass(10 * time.Millisecond)
				}
				if s := d.Stats(); s.Permits != before.Permits {
					t.Errorf("%s: %d calls were paid from what was held before", name, s.Permits-before.Permits)
				}
				pass(200 * time.Millisecond)
				w.warm(d, call("b", 10))
			}
		})
	})
}

// TestThrottledClasses: what a provider has refused it refuses whoever asks.
func TestThrottledClasses(t *testing.T) {
	t.Run("S1-05", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(`
limits:
- {name: model, match: {model: "*"}, rate: {requests: 1000/s}, burst: {requests: 1000},
   classes: {live: {share: 60%}, batch: {share: 40%}}}
`)
			d := w.desk(nil)
			live, batch := charge.Work{Class: "live"}, charge.Work{Class: "batch"}
			live.Attributes = map[string]string{"model": "m"}
			batch.Attributes = live.Attributes
			w.warm(d, live)
			w.warm(d, batch)
			c := w.take(d, live)
			c.Throttled(5 * time.Second)
			c.Settle(nil)
			before := d.Stats().Permits
			for range 20 {
				w.take(d, batch).Settle(nil)
				pass(100 * time.Millisecond)
			}
			if n := d.Stats().Permits - before; n != 0 {
				t.Errorf("%d calls of another class were paid from what was held before", n)
			}
		})
	})
}
