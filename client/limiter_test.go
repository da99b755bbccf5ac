package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// limiter makes a client and one limiter of it.
func (w *world) limiter(config client.LimiterConfig) (*client.Client, *client.Limiter) {
	w.t.Helper()
	c := w.client(nil)
	l, err := c.Limiter(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return c, l
}

// level is what a bucket has.
func (w *world) level(limit, key string) (tokens int64, leases int) {
	w.t.Helper()
	w.View(func(m *fsm.Machine, now bucket.Instant) {
		found, err := m.Inspect(now, limit, key)
		if err != nil {
			w.t.Fatal(err)
		}
		tokens, leases = found.Buckets[0].Level, found.OpenLeases
	})
	return tokens, leases
}

func TestLimiter(t *testing.T) {
	t.Run("permits_come_from_blocks", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "open", Key: "k"})
			defer c.Close()
			granted := 0
			for range 3000 {
				if l.Allow() {
					granted++
				}
				pass(2 * time.Millisecond)
			}
			if granted != 3000 {
				t.Errorf("%d of 3000 granted at half of the rate", granted)
			}
			if n := w.Counts().Acquires; n > 30 {
				t.Errorf("asked %d times in 6 s", n)
			}
		})
	})
	t.Run("G1_no_more_than_the_limit", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "share"})
			defer c.Close()
			granted := 0
			for range 10_000 {
				if l.Allow() {
					granted++
				}
				pass(time.Millisecond)
			}
			if granted > 1100 || granted < 1000 {
				t.Errorf("%d granted in 10 s, want 100 + 100/s, and most of it", granted)
			}
			if n := w.Counts().Acquires; n > 1000 {
				t.Errorf("asked %d times in 10 s for what is not there", n)
			}
			w.wantAlerts(0, 0)
		})
	})
	t.Run("what_is_not_needed_goes_back", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "open", Key: "k"})
			for range 1000 {
				l.Allow()
				pass(2 * time.Millisecond)
			}
			pass(10 * time.Second)
			if level, leases := w.level("open", "k"); leases != 0 || level != 1000 {
				t.Errorf("%d leases are open after ten idle seconds, %d tokens there", leases, level)
			}
			asked := w.Counts().Operations
			pass(time.Minute)
			if n := w.Counts().Operations - asked; n != 0 {
				t.Errorf("%d operations in an idle minute", n)
			}
			l.Allow()
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if level, leases := w.level("open", "k"); leases != 0 || level < 999 {
				t.Errorf("%d leases are open after Close, %d tokens there", leases, level)
			}
			if l.Allow() || !errors.Is(l.Wait(t.Context()), client.ErrClosed) {
				t.Error("a closed limiter allows")
			}
		})
	})
}

func TestLimiterRefused(t *testing.T) {
	t.Run("a_debt_is_waited_for", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "share"})
			defer c.Close()
			first := w.acquire(c, time.Second, client.Request{Track: true, Charges: []client.Charge{charge("share", 100)}})
			if _, err := c.Settle(t.Context(), first.Lease, client.Usage{Dimension: "requests", Used: 200}); err != nil {
				t.Fatal(err)
			}
			asked := w.Counts().Acquires
			done := make(chan error)
			for n := range 3 {
				go func() { done <- l.WaitN(t.Context(), 10*(n+1)) }()
			}
			for range 3 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if n := w.Counts().Acquires - asked; n > 20 {
				t.Errorf("asked %d times", n)
			}
		})
	})
	t.Run("an_unknown_limit", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "nosuch"})
			defer c.Close()
			if l.Allow() {
				t.Error("allowed")
			}
			if err := l.Wait(t.Context()); err == nil {
				t.Error("waited for an unknown limit")
			}
			if n := w.Counts().Acquires; n > 2 {
				t.Errorf("asked %d times", n)
			}
		})
	})
	t.Run("a_bad_configuration", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			for _, config := range []client.LimiterConfig{
				{}, {Limit: "a", BlockMax: -1}, {Limit: "a", Patience: -1}, {Limit: "a", Key: "\n"},
			} {
				if _, err := c.Limiter(config); err == nil {
					t.Errorf("%+v was taken", config)
				}
			}
		})
	})
}

func TestLimiterWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, l := w.limiter(client.LimiterConfig{Limit: "share"})
		defer c.Close()
		began := time.Now()
		const callers = 20
		done := make(chan error)
		for range callers {
			go func() { done <- l.WaitN(t.Context(), 20) }()
		}
		for range callers {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		// 400 tokens of 100 and 100/s: three seconds, and the jitter.
		if took := time.Since(began); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("400 tokens in %s, want a little more than 3 s", took)
		}
		for l.Allow() {
			pass(time.Microsecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		var denied *client.DeniedError
		began = time.Now()
		if err := l.WaitN(ctx, 50); !errors.As(err, &denied) || denied.RetryAfter < 20*time.Millisecond {
			t.Errorf("got %v, want a hint that is beyond the deadline", err)
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("gave up after %s, want at once", took)
		}
		if err := l.WaitN(t.Context(), 101); !errors.As(err, &denied) || !denied.Never {
			t.Errorf("got %v for more than the burst, want never", err)
		}
		w.wantAlerts(0, 0)
	})
}

func TestLimiterWithoutAuthority(t *testing.T) {
	t.Run("held_tokens_survive_an_election", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "closed"})
			defer c.Close()
			for range 300 {
				l.Allow()
				pass(10 * time.Millisecond)
			}
			w.NoLeader()
			time.AfterFunc(1500*time.Millisecond, func() { w.Serve() })
			for i := range 300 {
				began := time.Now()
				if !l.Allow() {
					t.Fatalf("permit %d was refused", i)
				}
				if took := time.Since(began); took != 0 {
					t.Fatalf("permit %d waited %s while tokens are held", i, took)
				}
				pass(10 * time.Millisecond)
			}
			w.wantAlerts(0, 0)
		})
	})
	t.Run("A20_open_admits_and_is_booked", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "open", Key: "k"})
			defer c.Close()
			l.Allow()
			w.NoQuorum()
			granted := 0
			for range 1000 {
				if l.Allow() {
					granted++
				}
				pass(10 * time.Millisecond)
			}
			if granted != 1000 {
				t.Errorf("%d of 1000 granted", granted)
			}
			w.wantAlerts(1, 0)
			w.Serve()
			pass(3 * time.Second)
			w.wantAlerts(1, 1)
			if tokens, _ := w.reported("open", "k"); tokens < 900 || tokens > 1000 {
				t.Errorf("%d tokens booked, want what was not held", tokens)
			}
			asked := w.Counts().Acquires
			for range 10 {
				l.Allow()
			}
			if w.Counts().Acquires == asked {
				t.Error("the authority is back and nobody asks it")
			}
		})
	})
	t.Run("A20_share_paces_and_closed_refuses", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "share"})
			defer c.Close()
			closed, err := c.Limiter(client.LimiterConfig{Limit: "closed"})
			if err != nil {
				t.Fatal(err)
			}
			l.Allow()
			closed.Allow()
			defer w.fourth("share")()
			w.NoQuorum()
			pass(6 * time.Second)
			for !c.FailOpen() {
				closed.Allow()
				pass(10 * time.Millisecond)
			}
			granted := 0
			for range 10_000 {
				paced, ok := l.Take(1)
				if ok {
					granted++
				}
				refused, open := closed.Take(1)
				if open {
					t.Fatal("a closed limit admits while nobody answers")
				}
				if !paced.Local() || !refused.Local() {
					t.Fatalf("local %t and %t, want both: nobody answers", paced.Local(), refused.Local())
				}
				pass(time.Millisecond)
			}
			if granted < 245 || granted > 275 {
				t.Errorf("%d granted in 10 s, want a quarter of 100/s", granted)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := l.WaitN(ctx, 5); err != nil {
				t.Errorf("waiting for the share: %v", err)
			}
			w.Serve()
		})
	})
}

func TestLimiterRepeats(t *testing.T) {
	t.Run("G4_a_lost_answer_is_asked_for_again", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c, l := w.limiter(client.LimiterConfig{Limit: "closed", BlockMax: 100})
			defer c.Close()
			w.ask(c, "closed", time.Second)
			w.Unknown()
			time.AfterFunc(1200*time.Millisecond, func() { w.Serve() })
			if err := l.WaitN(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
			if level, leases := w.level("closed", ""); leases > 1 {
				t.Errorf("%d leases are open, %d tokens left: want one lease", leases, level)
			}
		})
	})
}

func TestPermits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, l := w.limiter(client.LimiterConfig{Limit: "share", BlockMax: 50})
		var used atomic.Int64
		one, ok := l.Take(40)
		if !ok || one.Local() {
			t.Fatalf("granted %t, by the client itself %t; want a block's permit", ok, one.Local())
		}
		one.Settle(10)
		two, ok := l.Take(30)
		if !ok {
			t.Fatal("what was given back is not there")
		}
		two.Settle(55)
		used.Add(10 + 55)
		if l.AllowN(1) {
			used.Add(1)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		level, leases := w.level("share", "")
		if leases != 0 || level > 100-used.Load()+3 || level < 100-used.Load() {
			t.Errorf("%d tokens left and %d leases after %d were used, want 35", level, leases, used.Load())
		}
	})
}

func TestReserve(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, l := w.limiter(client.LimiterConfig{Limit: "share"})
		defer c.Close()
		if r := l.ReserveN(100); !r.OK() || r.Delay() != 0 {
			t.Fatalf("all of the burst: ok %v, delay %s", r.OK(), r.Delay())
		}
		first, second := l.ReserveN(50), l.ReserveN(50)
		if !first.OK() || first.Delay() < 450*time.Millisecond || first.Delay() > 600*time.Millisecond {
			t.Errorf("the first: ok %v, delay %s; want half a second", first.OK(), first.Delay())
		}
		if !second.OK() || second.Delay() < 900*time.Millisecond || second.Delay() > 1200*time.Millisecond {
			t.Errorf("the second: ok %v, delay %s; want a second", second.OK(), second.Delay())
		}
		if r := l.ReserveN(200); r.OK() || r.Delay() != client.InfDuration {
			t.Errorf("more than the burst: ok %v, delay %s", r.OK(), r.Delay())
		}
		second.Cancel()
		second.Cancel()
		pass(first.Delay())
		pass(100 * time.Millisecond)
		first.Cancel()
		if !l.AllowN(50) {
			t.Error("what was given back is not there")
		}
		w.wantAlerts(0, 0)
	})
}
