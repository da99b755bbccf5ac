package charge_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/charge"
)

// attempt is a call of a client that made so many retries before.
func attempt(name string, n uint32) charge.Work {
	work := call("a", 10)
	work.Client, work.Attempt = name, n
	return work
}

// TestRetryBudgets: each client behind the gateway has his own, before any token is taken.
func TestRetryBudgets(t *testing.T) {
	t.Run("S1-30_S1-20_a_storm_takes_no_token_and_no_one_else's_turn", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, attempt("storm", 0))
			w.warm(d, attempt("calm", 0))
			asked, admitted, refused := w.asked.Load(), 0, 0
			var last *client.Decision
			for range 1000 {
				c, decision, err := d.Take(t.Context(), attempt("storm", 1))
				if err != nil {
					t.Fatal(err)
				}
				if last = decision; c == nil {
					refused++
				} else {
					c.Settle(nil)
					admitted++
				}
				pass(time.Millisecond)
			}
			if admitted < 40 || admitted > 60 {
				t.Errorf("%d retries are admitted, want about the fifty that are always let through", admitted)
			}
			if one := last.Denials[0]; one.Reason != "RETRY_BUDGET" || one.RetryAfter != time.Minute || one.FreesIn <= 0 ||
				last.Source != client.Local {
				t.Errorf("%+v, want this gateway's refusal with its wait", last)
			}
			if n := w.asked.Load() - asked; n > 2 {
				t.Errorf("the authority was asked %d times", n)
			}
			s := d.Stats()
			if s.OverBudget != uint64(refused) {
				t.Errorf("%d of %d refusals are counted", s.OverBudget, refused)
			}
			before, _ := w.level("tenant", "a")
			for range 1000 {
				w.denied(d, attempt("storm", 2))
			}
			if after, _ := w.level("tenant", "a"); after["requests"] < before["requests"] {
				t.Errorf("refusals have cost %d requests", before["requests"]-after["requests"])
			}
			w.take(d, attempt("calm", 1)).Settle(nil)
			// Where nothing is held of what it asks for nobody has to be asked for that.
			cold := attempt("storm", 0)
			cold.Attributes["tenant"] = "b"
			w.take(d, cold).Settle(nil)
			cold.Attempt, asked = 1, w.asked.Load()
			w.denied(d, cold)
			if n := w.asked.Load() - asked; n != 0 {
				t.Errorf("the authority was asked %d times for a retry that is over the budget", n)
			}
		})
	})
	t.Run("S1-19_an_attempt_above_the_most_is_never_let_through", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, attempt("c", 0))
			w.take(d, attempt("c", 3)).Settle(nil)
			if got := w.denied(d, attempt("c", 4)).Denials[0]; got.Reason != "ATTEMPTS" || !got.Never {
				t.Errorf("%+v, want never", got)
			}
		})
	})
}

// TestStormAsksNobody: what was refused here is refused here for as long as the budget is
// used up, although nodes refuse as well, so that nothing new is learnt of what is charged.
func TestStormAsksNobody(t *testing.T) {
	t.Run("S1-03_for_minutes", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, attempt("storm", 0))
			for range 60 {
				if c, _, err := d.Take(t.Context(), attempt("storm", 1)); err != nil {
					t.Fatal(err)
				} else if c != nil {
					c.Settle(nil)
				}
			}
			w.acquire = func(r client.Request) (*client.Decision, error) {
				return &client.Decision{
					Source: client.Consensus, Denials: []client.Denial{{Reason: "RETRY_BUDGET", RetryAfter: time.Minute}},
				}, nil
			}
			asked := w.asked.Load()
			for range 4 * 60 * 10 {
				w.denied(d, attempt("storm", 1))
				pass(100 * time.Millisecond)
			}
			if n := w.asked.Load() - asked; n != 0 {
				t.Errorf("2400 refusals have asked the authority %d times", n)
			}
		})
	})
}

// TestTheAuthorityMayAdmit: a gateway refuses by itself what it knows that nobody would
// admit, and asks for the rest.
func TestTheAuthorityMayAdmit(t *testing.T) {
	asked := func(w *world, f func()) int64 {
		before := w.asked.Load()
		f()
		return w.asked.Load() - before
	}
	t.Run("S1-19_whose_budget_is_not_known_yet", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			if n := asked(w, func() { w.take(d, attempt("new", 5)).Settle(nil) }); n != 1 {
				t.Errorf("the authority was asked %d times for a client that nothing is known of, want once", n)
			}
			// The answer said that there is a budget, of three retries.
			if n := asked(w, func() { w.denied(d, attempt("new", 5)) }); n != 0 {
				t.Errorf("the authority was asked %d times for what its budget never admits", n)
			}
		})
	})
	t.Run("S1-30_a_refusal_teaches_nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			work := attempt("new", 5)
			w.acquire = func(r client.Request) (*client.Decision, error) {
				return &client.Decision{
					Source: client.Consensus, Denials: []client.Denial{{Reason: "RETRY_BUDGET", RetryAfter: time.Minute}},
				}, nil
			}
			if n := asked(w, func() { w.denied(d, work); w.denied(d, work) }); n != 2 {
				t.Errorf("the authority was asked %d times, want twice: it has said nothing of the budget", n)
			}
		})
	})
	t.Run("S1-31_the_floor_is_the_fleet's", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(`retry_budgets: [{name: everybody, match: {client: "*"}, window: 300s, min_retries: 20/min}]`)
			d := w.desk(nil)
			w.warm(d, attempt("c", 0))
			n := asked(w, func() {
				for range 99 {
					w.take(d, attempt("c", 1)).Settle(nil)
				}
			})
			if n < 40 || n > 60 {
				t.Errorf("the authority was asked %d times, want about the fifty that only the floor admits", n)
			}
			n = asked(w, func() {
				w.take(d, attempt("c", 1)).Settle(nil)
				for range 1000 {
					w.denied(d, attempt("c", 1))
				}
			})
			if n != 1 {
				t.Errorf("the authority was asked %d times, want once: the whole floor is used up here", n)
			}
		})
	})
}

// TestCallsAreCountedOnce: by the desk where they ask nobody, else by who is asked.
func TestCallsAreCountedOnce(t *testing.T) {
	t.Run("S1-28_S1-31_each_call_is_counted_once", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			desks := []*charge.Desk{w.desk(nil), w.desk(nil)}
			for i := range 2000 {
				for j, d := range desks {
					work := attempt(fmt.Sprint("c", i%3), uint32(i%10/9))
					// Some take a slot: they ask, and are counted by who is asked.
					if (i+j)%50 == 0 {
						work.Attributes["slots"] = "s"
					}
					if c, _, err := d.Take(t.Context(), work); err != nil {
						t.Fatal(err)
					} else if c != nil {
						c.Settle(nil)
					}
					pass(time.Millisecond)
				}
			}
			pass(3 * time.Second)
			var told, permits int64
			for i := range 3 {
				told += w.counted(fmt.Sprint("c", i)).Count.Total
			}
			for _, d := range desks {
				permits += int64(d.Stats().Permits)
			}
			// What asks is counted by a node as it decides, which this cluster leaves out.
			if told != permits || permits < 2000 {
				t.Errorf("%d are told of %d that were paid from what is held", told, permits)
			}
			if got := w.counted("gateway").Count; got.Total != 0 {
				t.Errorf("%+v is counted as the gateway's own", got)
			}
		})
	})
	t.Run("S3-43_the_gateway's_own_tries_are_not_the_client's", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.acquire = func(r client.Request) (*client.Decision, error) {
				if r.Attempt != 0 {
					t.Errorf("attempt %d of the client's is told", r.Attempt)
				}
				return nil, nil
			}
			work := attempt("c", 2)
			work.Again = true
			w.warm(d, work)
			for range 200 {
				w.take(d, work).Settle(nil)
				pass(time.Millisecond)
			}
			pass(2 * time.Second)
			if got := w.counted("c").Count; got.Total != 0 {
				t.Errorf("%+v, want nothing counted", got)
			}
		})
	})
}

// TestRetriesAtOnce: between looking and counting no other call gets through.
func TestRetriesAtOnce(t *testing.T) {
	t.Run("S1-29", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, attempt("c", 0))
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					if c, _, err := d.Take(t.Context(), attempt("c", 1)); err != nil {
						t.Error(err)
					} else if c != nil {
						c.Settle(nil)
						admitted.Add(1)
					}
				})
			}
			all.Wait()
			if n := admitted.Load(); n < 30 || n > 51 {
				t.Errorf("%d retries are admitted, want what is left of the first fifty requests", n)
			}
			pass(10 * time.Second)
			_ = d.Close()
			if levels, leases := w.level("tenant", "a"); levels["tokens"] != 100_000 || leases != 0 {
				t.Errorf("%v are left and %d leases open", levels, leases)
			}
		})
	})
}

// TestBudgetUsedMeanwhile: a call that was within its budget when it was looked at, and is
// not when it is to be counted, gives its tokens back.
func TestBudgetUsedMeanwhile(t *testing.T) {
	t.Run("S1-29", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(purses)
			d := w.desk(nil)
			work := charge.Work{
				Client: "c", Attributes: map[string]string{"purse": "p"}, Amounts: map[string]int64{"tokens": 10, "calls": 1},
			}
			w.warm(d, work)
			looks := 0
			w.tries = func(name string) {
				if looks++; looks == 2 {
					for range 60 {
						w.Client.TriesOf(name).Permit(1)
					}
				}
			}
			work.Attempt = 1
			if got := w.denied(d, work); got.Denials[0].Reason != "RETRY_BUDGET" || looks != 2 {
				t.Errorf("%+v after %d looks, want a refusal at the second", got, looks)
			}
			before := d.Stats()
			_ = d.Close()
			calls := int64(before.Permits + before.Asked)
			if levels, _ := w.level("purse", "p"); levels["tokens"] != 10_000_000-10*calls {
				t.Errorf("%d tokens are left after %d calls for 10", levels["tokens"], calls)
			}
		})
	})
}

// TestFloorNeededMeanwhile: a call that only the floor admits when it is to be counted gives
// its tokens back and asks.
func TestFloorNeededMeanwhile(t *testing.T) {
	t.Run("S1-29", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(`retry_budgets: [{name: everybody, match: {client: "*"}, window: 300s, min_retries: 20/min}]`)
			d := w.desk(nil)
			w.warm(d, attempt("c", 0))
			looks := 0
			w.tries = func(name string) {
				if looks++; looks == 2 {
					for range 60 {
						w.Client.TriesOf(name).Permit(1)
					}
				}
			}
			asked := w.asked.Load()
			w.take(d, attempt("c", 1)).Settle(nil)
			if n := w.asked.Load() - asked; n != 1 || looks != 2 {
				t.Errorf("asked %d times after %d looks, want once after the second", n, looks)
			}
			pass(10 * time.Second)
			_ = d.Close()
			if levels, leases := w.level("tenant", "a"); levels["tokens"] != 100_000 || leases != 0 {
				t.Errorf("%v are left and %d leases open", levels, leases)
			}
		})
	})
}

// TestOverBudget: the budget is that of all gateways, and may refuse everything of a client.
func TestOverBudget(t *testing.T) {
	t.Run("S1-31_whom_the_authority_refuses_asks_until_it_does_not", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, attempt("c", 0))
			young := attempt("c", 0)
			young.Attributes["tenant"] = "b"
			pass(5 * time.Second)
			w.warm(d, young)
			over, refusals := false, 0
			w.acquire = func(r client.Request) (*client.Decision, error) {
				if !over || r.Client != "c" {
					return nil, nil
				}
				refusals++
				return &client.Decision{Denials: []client.Denial{{Reason: "RETRY_BUDGET", RetryAfter: time.Minute}}}, nil
			}
			over = true
			// The plan is made anew within ten seconds, and by then it is found out.
			for refusals == 0 {
				w.take(d, young).Settle(nil)
				if c, _, _ := d.Take(t.Context(), attempt("c", 0)); c != nil {
					c.Settle(nil)
				}
				pass(10 * time.Millisecond)
			}
			w.denied(d, young)
			for range 100 {
				if got := w.denied(d, attempt("c", 0)); got.Denials[0].Reason != "RETRY_BUDGET" {
					t.Fatalf("%+v", got)
				}
				w.take(d, attempt("other", 0)).Settle(nil)
			}
			over = false
			w.take(d, attempt("c", 0)).Settle(nil)
			w.warm(d, attempt("c", 0))
		})
	})
}
