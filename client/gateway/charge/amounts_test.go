package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/charge"
)

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
