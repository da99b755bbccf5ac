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
				var used, inside, most atomic.Int64
				began := time.Now()
				var callers sync.WaitGroup
				for range 2 {
					d := w.desk(nil)
					for i := range 8 {
						private := rand.New(rand.NewPCG(random.Uint64(), 0))
						callers.Go(func() {
							for ctx.Err() == nil {
								w.one(ctx, d, private, i%2 == 0, &used, &inside, &most)
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
				if got, want := used.Load(), 1000+int64(took/time.Millisecond); got > want || got < want/5 {
					t.Errorf("seed %d: %d tokens used in %s, want %d at most and not much less", seed, got, took, want)
				}
				if n := most.Load(); n > 3 || n < 2 {
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

// one is one call.
func (w *world) one(
	ctx context.Context, d *charge.Desk, random *rand.Rand, slot bool, used, inside, most *atomic.Int64,
) {
	work := charge.Work{
		Client: "c", Attributes: map[string]string{"rate": "r"},
		Amounts: map[string]int64{"tokens": 1 + random.Int64N(50)}, MaxWait: time.Second,
	}
	if slot {
		work.Attributes["crew"] = "c"
	}
	c, _, err := d.Take(ctx, work)
	if err != nil && ctx.Err() == nil {
		w.t.Error(err)
	}
	if c == nil {
		pass(time.Millisecond)
		return
	}
	// What is used above the estimate is debt, which a limit lets pass and then waits for.
	tokens := random.Int64N(work.Amounts["tokens"] + 1)
	if slot {
		most.Store(max(most.Load(), inside.Add(1)))
	}
	pass(time.Duration(random.IntN(100)) * time.Millisecond)
	if slot {
		inside.Add(-1)
	}
	c.Settle(map[string]int64{"tokens": tokens})
	used.Add(tokens)
}
