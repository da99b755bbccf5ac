package client_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// trouble does to nodes what happens to nodes, and ends well.
func (w *world) trouble(random *rand.Rand, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		node := random.IntN(3)
		switch random.IntN(6) {
		case 0:
			w.NoLeader()
		case 1:
			w.Hang(node)
		case 2:
			w.Unknown(node)
		case 3:
			w.Drain(node)
		case 4:
			w.Down(node)
		case 5:
			w.Delay(time.Duration(random.IntN(200)) * time.Millisecond)
		}
		pass(time.Duration(random.IntN(700)) * time.Millisecond)
		w.Serve()
		w.Delay(0)
		if err := w.Up(); err != nil {
			w.t.Error(err)
		}
		pass(time.Duration(random.IntN(700)) * time.Millisecond)
	}
}

// TestG2InTrouble: whatever happens to nodes and answers, all limiters together
// spend no more than was debited, and nothing stays behind.
func TestG2InTrouble(t *testing.T) {
	for seed := range uint64(3) {
		t.Run("G2", func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				random := rand.New(rand.NewPCG(seed, 0))
				const length = 20 * time.Second
				var spent atomic.Int64
				var callers sync.WaitGroup
				ctx, cancel := context.WithTimeout(t.Context(), length)
				defer cancel()
				var clients []*client.Client
				for range 3 {
					// What is admitted locally is another test's.
					c := w.client(func(c *client.Config) { c.Fallback.Mode = failopen.Closed })
					l, err := c.Limiter(client.LimiterConfig{Limit: "closed"})
					if err != nil {
						t.Fatal(err)
					}
					clients = append(clients, c)
					for range 4 {
						private := rand.New(rand.NewPCG(random.Uint64(), 0))
						callers.Go(func() { spent.Add(use(ctx, l, private)) })
					}
				}
				began := time.Now()
				w.trouble(random, length)
				callers.Wait()
				for _, c := range clients {
					c.Close()
				}
				took := time.Since(began)
				most := 1000 + int64(took/time.Millisecond)
				if got := spent.Load(); got > most || got < most/4 {
					t.Errorf("seed %d: %d tokens spent in %s, want %d at most and not much less", seed, got, took, most)
				}
				pass(time.Minute)
				if _, leases := w.level("closed", ""); leases != 0 {
					t.Errorf("seed %d: %d leases are open a minute later", seed, leases)
				}
				w.View(func(m *fsm.Machine, now bucket.Instant) {
					if found, err := m.Inspect(now, "closed", ""); err != nil || found.Buckets[0].Debt != 0 {
						t.Errorf("seed %d: a debt of %d", seed, found.Buckets[0].Debt)
					}
				})
			})
		})
	}
}

// use spends in every way until ctx ends, and returns how much.
func use(ctx context.Context, l *client.Limiter, random *rand.Rand) (spent int64) {
	for ctx.Err() == nil {
		n := 1 + random.IntN(50)
		switch random.IntN(4) {
		case 0:
			if l.AllowN(n) {
				spent += int64(n)
			}
		case 1:
			if l.WaitN(ctx, n) == nil {
				spent += int64(n)
			}
		case 2:
			if permit, ok := l.Take(n); ok {
				used := random.IntN(n + 1)
				pass(time.Duration(random.IntN(20)) * time.Millisecond)
				permit.Settle(used)
				spent += int64(used)
			}
		case 3:
			if r := l.ReserveN(n); r.OK() && r.Delay() < time.Second {
				pass(r.Delay())
				spent += int64(n)
			} else {
				r.Cancel()
			}
		}
		pass(time.Duration(random.IntN(30)) * time.Millisecond)
	}
	return spent
}

func TestLimiterOfOddLimits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		err := w.LimitsFile(`
limits:
- {name: unlimited, unlimited: true}
- {name: brief, rate: {requests: 1000/s}, burst: {requests: 1000}, lease: 1ms}
- {name: none, rate: {requests: 0/s}}
`)
		if err != nil {
			t.Fatal(err)
		}
		c, l := w.limiter(client.LimiterConfig{Limit: "unlimited"})
		defer c.Close()
		for i := range 1000 {
			if !l.Allow() {
				t.Fatalf("permit %d of an unlimited limit was refused", i)
			}
			pass(time.Millisecond)
		}
		none, err := c.Limiter(client.LimiterConfig{Limit: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if none.Allow() {
			t.Error("a limit that hands out nothing allowed")
		}
		brief, err := c.Limiter(client.LimiterConfig{Limit: "brief"})
		if err != nil {
			t.Fatal(err)
		}
		w.Delay(5 * time.Millisecond)
		asked := w.Counts().Acquires
		for range 100 {
			brief.Allow()
			pass(10 * time.Millisecond)
		}
		if n := w.Counts().Acquires - asked; n > 10 {
			t.Errorf("asked %d times in a second for leases that end before they arrive", n)
		}
	})
}
