package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// queued is a limit at which acquires may wait.
func queued(limit *logv1.Limit) *logv1.Limit {
	limit.Queue = &logv1.Queue{Max: 10_000, MaxWait: int64(time.Minute)}
	return limit
}

// wait hands in an acquire that may wait.
func wait(n *cluster.Node, op *logv1.Acquire, maxWait time.Duration) (<-chan outcome, *cluster.Pending) {
	start := time.Now()
	done := make(chan outcome, 1)
	p := &cluster.Pending{
		Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}},
		MaxWait:   maxWait,
		Done:      func(r *logv1.Result, err error) { done <- outcome{r, err, time.Since(start)} },
	}
	n.Submit(p)
	return done, p
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	t.Run("granted_when_it_has_refilled", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			t, c := b.T, b.Cluster
			c.ApplyLimits("a", queued(clustertest.Rate("gpt", 10, time.Second, 1)))
			c.Decide("a", clustertest.Acquire("gpt", 1))
			for _, name := range []string{c.Leader(), c.Followers()[0]} {
				done, _ := wait(c.Node(name), clustertest.Acquire("gpt", 1), 10*time.Second)
				synctest.Wait()
				o := <-done
				r := o.result.GetAcquire()
				if o.err != nil || !r.GetGranted() || o.after > 150*time.Millisecond || r.GetQueue().GetPosition() != 1 {
					t.Errorf("at %s after %v: %v, %v", name, o.after, r, o.err)
				}
			}
			c.RequireSameState()
		})
	})
}
