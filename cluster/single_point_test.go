package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster/clustertest"
)

// TestNoSinglePoint: the leader is cut off from the others, and then the next one. Callers of
// both others are served again within seconds, from the one bucket that all of them
// share.
func TestNoSinglePoint(t *testing.T) {
	t.Parallel()
	t.Run("S3-37", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			t, c := b.T, b.Cluster
			const burst = 100
			c.ApplyLimits("a", clustertest.Rate("gpt", 1, 24*time.Hour, burst))
			granted, doubtful := 0, 0
			ask := func(name string) bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r, err := c.Node(name).Acquire(ctx, clustertest.Acquire("gpt", 1), 0)
				if err != nil {
					doubtful++
				}
				if r.GetGranted() {
					granted++
				}
				return r.GetGranted()
			}
			down := c.Leader()
			for range 2 {
				c.Isolate(down)
				rest := others(c, down)
				for _, name := range rest {
					for began := time.Now(); !ask(name); {
						if time.Since(began) > 8*time.Second {
							t.Fatalf("without %s: %s serves nobody", down, name)
						}
						pass(100 * time.Millisecond)
					}
				}
				for i := range 20 {
					if name := rest[i%2]; !ask(name) {
						t.Fatalf("without %s: %s denies or fails the %dth", down, name, i+1)
					}
				}
				c.Heal()
				down = c.Leader()
			}
			for ask(c.Leader()) {
			}
			// What had no answer may have been granted. Nobody started from a full bucket.
			if granted > burst || granted+doubtful < burst {
				t.Errorf("%d were granted, %d had no answer; want %d of one bucket", granted, doubtful, burst)
			}
			c.RequireSameState()
		})
	})
}
