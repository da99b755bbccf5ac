package charge_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/charge"
)

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
	t.Run("a_rare_one's_hold_nothing", func(t *testing.T) {
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
}

// TestPlansAreMadeAnew: by one call, and the others go on with the old one.
func TestPlansAreMadeAnew(t *testing.T) {
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
