package cluster_test

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// TestEscrowWakesWhoWaits: what a node gives back is there for who waits, at once and not
// when it would have refilled.
func TestEscrowWakesWhoWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		limit := queued(clustertest.Rate("gpt", 10, time.Second, 1000))
		limit.Escrow = int64(time.Minute)
		b.ApplyLimits("a", limit)
		// What nodes ask for by themselves goes back first.
		pass(90 * time.Second)
		id := &logv1.EscrowID{Node: "elsewhere", Boot: 1, Sequence: 1}
		do := func(op *logv1.Operation) *logv1.Result {
			r, err := b.Node("a").Do(b.Context(), op, 0)
			if err != nil {
				b.Fatal(err)
			}
			return r
		}
		given := do(&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: &logv1.AskEscrow{
			Id: id, Limit: "gpt", Dimension: "requests", Amount: 400,
		}}}).GetEscrow().GetAmount()
		if left := b.level("a", "gpt"); given != 400 || !b.Decide("a", plainly("gpt", left)).GetGranted() {
			b.Fatalf("%d are elsewhere, and %d here", given, left)
		}
		done, _ := wait(b.Node("b"), plainly("gpt", 300), time.Minute)
		pass(time.Second)
		do(&logv1.Operation{Kind: &logv1.Operation_ReturnEscrow{ReturnEscrow: &logv1.ReturnEscrow{
			Returns: []*logv1.EscrowReturn{{Id: id, Unspent: 400}},
		}}})
		b.grantedAfter(done, time.Second)
	})
}

// TestEscrowComesBackWhenANodeStops: one that is stopped in order leaves nothing with
// itself, one that crashes what it had, and nobody waits for it where nobody leads.
func TestEscrowComesBackWhenANodeStops(t *testing.T) {
	t.Parallel()
	slow := func() *logv1.Limit {
		limit := hot("gpt", 3600*100, 1000)
		limit.Dimensions[0].Interval = int64(time.Hour)
		return limit
	}
	// The bucket refills in no time that matters here: none of it is left out.
	taken := func(b bubble) int64 {
		b.ApplyLimits("a", slow())
		sum := int64(0)
		for _, s := range b.load(b.Names(), "gpt", 20*time.Millisecond, time.Second) {
			sum += int64(s.granted())
		}
		return sum
	}
	for name, stop := range map[string]func(b bubble, node string){
		"in_order":   func(b bubble, node string) { b.Stop(node) },
		"by_a_crash": func(b bubble, node string) { b.Crash(node) },
	} {
		for _, leads := range []bool{true, false} {
			title := name + "_a_follower"
			if leads {
				title = name + "_the_leader"
			}
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				inBubble(t, nil, func(b bubble) {
					taken(b)
					node := b.Followers()[0]
					if leads {
						node = b.Leader()
					}
					begin := time.Now()
					stop(b, node)
					other := others(b.Cluster, node)[0]
					b.Leader(others(b.Cluster, node)...)
					held := b.outstanding(other, "gpt", node)
					if name == "in_order" && held > 0 || name != "in_order" && held == 0 {
						b.Errorf("%d tokens are with it, %v after it was stopped", held, time.Since(begin))
					}
				})
			})
		}
	}
	t.Run("without_a_leader", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			taken(b)
			for _, name := range b.Names() {
				b.Isolate(name)
			}
			pass(time.Second)
			begin := time.Now()
			b.Stop(b.Names()[0])
			if took := time.Since(begin); took > time.Second {
				b.Errorf("it took %v", took)
			}
		})
	})
}

// outstanding is what a node was given and has not given back.
func (b *bubble) outstanding(at, limit, node string) (tokens int64) {
	err := b.Node(at).View(b.Context(), false, func(m *fsm.Machine, _ bucket.Instant) {
		for _, o := range m.Escrow().Of(limit, "") {
			if identity.NameOf(o.Node) == node {
				tokens += o.Tokens
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return tokens
}

// TestEscrowIsWarmAfterARestart: keys that a node held before are there again before
// anybody asks, however it ended; a key that was used once is not.
func TestEscrowIsWarmAfterARestart(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(b bubble, node string){
		"in_order":   func(b bubble, node string) { b.Stop(node) },
		"by_a_crash": func(b bubble, node string) { b.Crash(node) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(b bubble) {
				limit := hot("gpt", 1000, 1000)
				limit.Keyed, limit.MaxKeys = true, 100
				b.ApplyLimits("a", limit)
				of := func(key string) *logv1.Acquire {
					op := plainly("gpt", 1)
					op.Charges[0].Key = key
					return op
				}
				node := b.Followers()[0]
				for i := range 200 {
					b.Decide(node, of([]string{"x", "y"}[i%2]))
					pass(10 * time.Millisecond)
				}
				b.Decide(node, of("once"))
				stop(b, node)
				pass(time.Second)
				b.Restart(node)
				b.RequireSameState()
				pass(500 * time.Millisecond)
				for key, want := range map[string]bool{"x": true, "y": true, "once": false, "never": false} {
					if r := b.Decide(node, of(key)); !r.GetGranted() || r.GetEscrow() != want {
						b.Errorf("%s: %v", key, r)
					}
				}
			})
		})
	}
}
