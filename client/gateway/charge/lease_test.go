package charge_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/charge"
)

// slotted is a call that takes one of two slots beside its tokens.
func slotted(wait time.Duration) charge.Work {
	work := call("a", 100)
	work.Attributes["slots"], work.MaxWait = "s", wait
	return work
}

// held checks how many slots are in use.
func (w *world) held(want int) {
	w.t.Helper()
	synctest.Wait()
	pass(100 * time.Millisecond)
	if _, leases := w.level("inflight", "s"); leases != want {
		w.t.Errorf("%d slots are in use, want %d", leases, want)
	}
}

// TestSlots: slots are those of the cluster, and come back on every path.
func TestSlots(t *testing.T) {
	t.Run("S2-18_two_desks_share_them", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			one, other := w.desk(nil), w.desk(nil)
			first := w.take(one, slotted(0))
			second := w.take(other, slotted(0))
			for _, d := range []*charge.Desk{one, other} {
				if got := w.denied(d, slotted(0)); got.Denials[0].Reason != "CONCURRENCY" || got.Denials[0].Limit != "inflight" {
					t.Errorf("%+v, want no third slot", got)
				}
			}
			first.Settle(map[string]int64{"tokens": 10})
			w.held(1)
			third := w.take(one, slotted(0))
			second.Release()
			third.Release()
			w.held(0)
		})
	})
	t.Run("S2-23_a_slot_comes_back_on_every_path", func(t *testing.T) {
		for name, end := range map[string]func(*charge.Charge){
			"settled":      func(c *charge.Charge) { c.Settle(nil) },
			"released":     func(c *charge.Charge) { c.Release() },
			"twice":        func(c *charge.Charge) { c.Release(); c.Settle(nil); c.Release() },
			"by_many":      func(c *charge.Charge) { both(c.Release, func() { c.Settle(nil) }) },
			"by_a_panic":   func(c *charge.Charge) { recovered(func() { defer c.Release(); panic("handler") }) },
			"with_unknown": func(c *charge.Charge) { c.Settle(map[string]int64{"unknown": 1, "slots": 7}) },
		} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					d := w.desk(nil)
					for range 5 {
						c := w.take(d, slotted(0))
						w.held(1)
						end(c)
						w.held(0)
					}
					if s := d.Stats(); s.Settled != 5 || s.Lost+s.Dropped != 0 || s.Leases != 0 {
						t.Errorf("%+v, want five ends that were told", s)
					}
				})
			})
		}
	})
	t.Run("S2-22_who_leaves_while_it_waits_takes_none", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			first, second := w.take(d, slotted(0)), w.take(d, slotted(0))
			ctx, cancel := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if c, _, err := d.Take(ctx, slotted(time.Minute)); c != nil || !errors.Is(err, context.Canceled) {
					t.Errorf("%v, %v, want that it was cancelled", c, err)
				}
			})
			pass(time.Second)
			cancel()
			waiting.Wait()
			first.Release()
			second.Release()
			w.held(0)
		})
	})
	t.Run("S2-25_nothing_is_held_while_a_slot_is_waited_for", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			first, second := w.take(d, slotted(0)), w.take(d, slotted(0))
			pass(2 * time.Second)
			before, _ := w.level("tenant", "a")
			var waiting sync.WaitGroup
			waiting.Go(func() { w.take(d, slotted(time.Minute)).Release() })
			pass(3 * time.Second)
			if during, _ := w.level("tenant", "a"); during["tokens"] != before["tokens"] {
				t.Errorf("the tenant has %d tokens of %d while a call waits", during["tokens"], before["tokens"])
			}
			first.Release()
			waiting.Wait()
			second.Release()
			w.held(0)
		})
	})
}

func both(do ...func()) {
	var all sync.WaitGroup
	for _, one := range do {
		all.Go(one)
	}
	all.Wait()
}

func recovered(do func()) {
	defer func() { _ = recover() }()
	do()
}

// TestRenewals: a call that takes long keeps its slot, and its refund.
func TestRenewals(t *testing.T) {
	t.Run("S2-18_a_long_stream_keeps_its_slot", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			c := w.take(d, slotted(0))
			for range 30 {
				pass(time.Second)
				w.held(1)
			}
			if n := w.renewals.Load(); n < 10 || n > 20 {
				t.Errorf("%d renewals of 4 s in 33 s, want one each 2 s", n)
			}
			renewed := w.renewals.Load()
			c.Settle(nil)
			w.held(0)
			pass(time.Minute)
			if n := w.renewals.Load() - renewed; n != 0 {
				t.Errorf("%d renewals after the end", n)
			}
		})
	})
	t.Run("S2-18_slots_are_renewed_for_as_long_as_their_own_limit_says", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(`limits: [{name: long, match: {long: "*"}, concurrency: 1, lease: 60s}]`)
			d := w.desk(nil)
			work := call("a", 1)
			work.Attributes["long"] = "x"
			c := w.take(d, work)
			pass(10 * time.Minute)
			if got := w.denied(d, work).Denials[0]; got.Limit != "long" {
				t.Errorf("%+v, want that the slot is in use", got)
			}
			if n := w.renewals.Load(); n < 15 || n > 25 {
				t.Errorf("%d renewals in ten minutes, want one each half of a minute", n)
			}
			c.Release()
		})
	})
	t.Run("S3-09_a_long_call's_refund_comes_back", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(`
limits:
- {name: purse, match: {purse: "*"}, rate: {tokens: 0/s}, burst: {tokens: 1000}, max_open: {tokens: 1000}}
`)
			d := w.desk(nil)
			c := w.take(d, charge.Work{
				Attributes: map[string]string{"purse": "p"}, Amounts: map[string]int64{"tokens": 900},
			})
			pass(10 * time.Minute)
			c.Settle(map[string]int64{"tokens": 100})
			pass(time.Second)
			if levels, leases := w.level("purse", ""); levels["tokens"] != 900 || leases != 0 {
				t.Errorf("%v are left of 1000 and %d leases open, want 900", levels, leases)
			}
			if n := w.renewals.Load(); n > 8 {
				t.Errorf("%d renewals in ten minutes: each is to be for twice as long", n)
			}
		})
	})
	t.Run("a_call_that_never_ends_is_given_up", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(func(c *charge.Config) { c.CallMax = 20 * time.Second })
			c := w.take(d, slotted(0))
			pass(15 * time.Second)
			w.held(1)
			pass(15 * time.Second)
			// What is over goes with the next entry.
			w.take(d, call("b", 1)).Release()
			w.held(0)
			if s := d.Stats(); s.Abandoned != 1 || s.Leases != 1 {
				t.Errorf("%+v, want one call abandoned", s)
			}
			c.Release()
			pass(10 * time.Second)
			if s := d.Stats(); s.Leases != 0 || s.Settled+s.Lost != 2 {
				t.Errorf("%+v, want no lease", s)
			}
		})
	})
	t.Run("A13_a_leader_dies_and_the_slots_stay", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			c := w.take(d, slotted(0))
			pass(1800 * time.Millisecond)
			w.NoLeader()
			pass(1500 * time.Millisecond)
			w.Serve()
			pass(10 * time.Second)
			w.held(1)
			c.Release()
			w.held(0)
		})
	})
}

// TestSettlementsAreBounded: what can't be told costs a refund, and never a caller's time.
func TestSettlementsAreBounded(t *testing.T) {
	t.Run("S1-52_a_full_queue_drops_what_comes", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			stuck := make(chan struct{})
			w.settle = func(ctx context.Context) error {
				select {
				case <-stuck:
				case <-ctx.Done():
				}
				return ctx.Err()
			}
			d := w.desk(func(c *charge.Config) { c.Workers, c.Settlements, c.Busy = 2, 3, 1000 })
			var all []*charge.Charge
			for range 10 {
				all = append(all, w.take(d, call("a", 1)))
			}
			began := time.Now()
			for _, c := range all {
				c.Settle(nil)
				synctest.Wait()
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("settling took %s", took)
			}
			if s := d.Stats(); s.Dropped != 5 || s.Waiting != 3 || s.Leases != 0 {
				t.Errorf("%+v, want two under way, three that wait and five dropped", s)
			}
			close(stuck)
			pass(time.Second)
			if s := d.Stats(); s.Settled != 5 || s.Waiting != 0 {
				t.Errorf("%+v, want that five were told", s)
			}
		})
	})
	t.Run("A13_what_nobody_answered_is_told_again", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			fails := 2
			w.settle = func(context.Context) error {
				if fails--; fails >= 0 {
					return client.ErrUnanswered
				}
				return nil
			}
			d := w.desk(func(c *charge.Config) { c.Workers = 1 })
			w.take(d, slotted(0)).Settle(nil)
			pass(400 * time.Millisecond)
			w.held(1)
			pass(1200 * time.Millisecond)
			w.held(0)
			if s := d.Stats(); s.Unanswered != 2 || s.Settled != 1 || s.Lost != 0 {
				t.Errorf("%+v, want that the third time succeeds", s)
			}
			fails = 1000
			w.take(d, slotted(0)).Settle(nil)
			pass(30 * time.Second)
			if s := d.Stats(); s.Unanswered != 5 || s.Lost != 1 || s.Waiting != 0 {
				t.Errorf("%+v, want that the fourth time is the last", s)
			}
			fails = 1
			w.take(d, slotted(0)).Settle(nil)
			pass(100 * time.Millisecond)
			_ = d.Close()
			if s := d.Stats(); s.Settled != 2 {
				t.Errorf("%+v, want that the end tells what is to be told again", s)
			}
		})
	})
}

func TestClose(t *testing.T) {
	t.Run("S2-23_what_has_ended_is_told_and_what_goes_on_is_not_renewed", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.warm(d, call("b", 10))
			permit := w.take(d, call("b", 10))
			ended, goesOn := w.take(d, slotted(0)), w.take(d, slotted(0))
			ended.Settle(nil)
			if err := d.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			w.held(1)
			permit.Settle(nil)
			goesOn.Settle(nil)
			if c, decision, err := d.Take(t.Context(), call("b", 10)); c != nil || !errors.Is(err, client.ErrClosed) {
				t.Errorf("%+v, %v, want that it is closed", decision, err)
			}
			if s := d.Stats(); s.Limiters != 0 || s.Leases != 0 || s.Dropped != 1 {
				t.Errorf("%+v, want nothing left but what ended too late", s)
			}
			pass(10 * time.Second)
			w.warm(w.desk(nil), call("b", 10))
			w.held(0)
			_ = d.Close()
		})
	})
	t.Run("S2-23_who_is_granted_something_meanwhile_gives_it_back", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(nil)
			w.Delay(50 * time.Millisecond)
			var taking sync.WaitGroup
			taking.Go(func() {
				if c, _, err := d.Take(t.Context(), slotted(0)); c != nil || !errors.Is(err, client.ErrClosed) {
					t.Errorf("%v, %v, want that it is closed", c, err)
				}
			})
			pass(20 * time.Millisecond)
			_ = d.Close()
			taking.Wait()
			w.held(0)
		})
	})
	t.Run("G8_it_ends_in_time_while_nobody_answers", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			d := w.desk(func(c *charge.Config) { c.CloseWithin = 500 * time.Millisecond })
			w.warm(d, call("a", 10))
			var all []*charge.Charge
			for range 100 {
				all = append(all, w.take(d, call("c", 10)))
			}
			w.Hang()
			for _, c := range all {
				c.Settle(nil)
			}
			began := time.Now()
			_ = d.Close()
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("closing took %s", took)
			}
			w.Serve()
		})
	})
}
