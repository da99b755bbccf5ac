package charge_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway/charge"
)

// trouble does to nodes what happens to nodes, and ends well.
func (w *world) trouble(random *rand.Rand, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		node := random.IntN(3)
		switch random.IntN(5) {
		case 0:
			w.NoLeader()
		case 1:
			w.Hang(node)
		case 2:
			w.Unknown(node)
		case 3:
			w.Down(node)
		case 4:
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

const closed = `
limits:
- {name: rate, match: {rate: "*"}, rate: {tokens: 1000/s}, burst: {tokens: 1000}, on_quorum_loss: closed}
- {name: crew, match: {crew: "*"}, concurrency: 3, lease: 5s, on_quorum_loss: closed}
`

// TestG2InTrouble: whatever happens to nodes, calls use no more than was debited, there are
// never more at once than there are slots, and nothing stays behind.
func TestG2InTrouble(t *testing.T) {
	for seed := range uint64(3) {
		t.Run("G2_S2-23", func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.limits(closed)
				random := rand.New(rand.NewPCG(seed, 0))
				const length = 20 * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), length)
				defer cancel()
				var seen figures
				began := time.Now()
				var callers sync.WaitGroup
				for range 2 {
					d := w.desk(nil)
					for i := range 8 {
						by := caller{w, d, rand.New(rand.NewPCG(random.Uint64(), 0)), i%2 == 0}
						callers.Go(func() {
							for ctx.Err() == nil {
								seen.call(ctx, by)
							}
						})
					}
				}
				w.trouble(random, length)
				callers.Wait()
				for _, d := range w.desks {
					_ = d.Close()
				}
				took := time.Since(began)
				if got, want := seen.used.Load(), 1000+int64(took/time.Millisecond); got > want || got < want/5 {
					t.Errorf("seed %d: %d tokens used in %s, want %d at most and not much less", seed, got, took, want)
				}
				if n := seen.most.Load(); n > 3 || n < 2 {
					t.Errorf("seed %d: %d calls at once with three slots", seed, n)
				}
				pass(2 * time.Minute)
				w.take(w.desk(nil), call("a", 1)).Release()
				for _, name := range []string{"rate", "crew"} {
					if _, leases := w.level(name, ""); leases != 0 {
						t.Errorf("seed %d: %d leases of %s are open two minutes later", seed, leases, name)
					}
				}
			})
		})
	}
}

// figures are what calls have used, and how many are inside at once, and were at most.
type figures struct{ used, inside, most atomic.Int64 }

// caller is who calls.
type caller struct {
	*world
	desk   *charge.Desk
	random *rand.Rand
	// slot: his calls take one.
	slot bool
}

// call is one call.
func (f *figures) call(ctx context.Context, by caller) {
	work := charge.Work{
		Client: "c", Attributes: map[string]string{"rate": "r"},
		Amounts: map[string]int64{"tokens": 1 + by.random.Int64N(50)}, MaxWait: time.Second,
	}
	if by.slot {
		work.Attributes["crew"] = "c"
	}
	c, _, err := by.desk.Take(ctx, work)
	if err != nil && ctx.Err() == nil {
		by.t.Error(err)
	}
	if c == nil {
		pass(time.Millisecond)
		return
	}
	// What is used above the estimate is debt, which a limit lets pass and then waits for.
	tokens := by.random.Int64N(work.Amounts["tokens"] + 1)
	if by.slot {
		n := f.inside.Add(1)
		for m := f.most.Load(); n > m && !f.most.CompareAndSwap(m, n); m = f.most.Load() {
		}
	}
	pass(time.Duration(by.random.IntN(100)) * time.Millisecond)
	if by.slot {
		f.inside.Add(-1)
	}
	c.Settle(map[string]int64{"tokens": tokens})
	f.used.Add(tokens)
}
