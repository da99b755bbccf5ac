package cluster_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// atOnce submits all operations at the same time, spread over the nodes, and
// returns the answers in their order. They are tracked, so one whose answer is
// lost in an election is asked again under the same lease id (G4).
func atOnce(t *testing.T, c *clustertest.Cluster, ops []*logv1.Acquire) []*logv1.AcquireResult {
	t.Helper()
	results := make([]*logv1.AcquireResult, len(ops))
	deadline := time.Now().Add(30 * time.Second)
	var waiting sync.WaitGroup
	waiting.Add(len(ops))
	for i, op := range ops {
		op.Track = true
		name := c.Names()[i%len(c.Names())]
		var ask func()
		ask = func() {
			c.Node(name).Submit(&cluster.Pending{
				Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}},
				Done: func(r *logv1.Result, err error) {
					if err != nil && time.Now().Before(deadline) {
						time.AfterFunc(10*time.Millisecond, ask)
						return
					}
					defer waiting.Done()
					if err != nil || r.GetAcquire() == nil {
						t.Errorf("acquire %d at %s: %v, %v", i, name, r, err)
					}
					results[i] = r.GetAcquire()
				},
			})
		}
		ask()
	}
	waiting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return results
}

func grants(results []*logv1.AcquireResult) int {
	n := 0
	for _, r := range results {
		if r.GetGranted() {
			n++
		}
	}
	return n
}

func TestThreeNodes(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 3, clustertest.Options{})
	t.Run("A14_simultaneous_acquires_are_exact", func(t *testing.T) {
		keyed := clustertest.Rate("keyed", 1, time.Hour, 10)
		keyed.Keyed = true
		c.ApplyLimits("a", clustertest.Rate("ten", 1, time.Hour, 10), keyed,
			clustertest.Rate("hundred", 100, time.Minute, 100))
		ops := make([]*logv1.Acquire, 2000)
		for i := range ops {
			ops[i] = clustertest.Acquire("ten", 1)
		}
		if n := grants(atOnce(t, c, ops)); n != 10 {
			t.Errorf("%d of 2000 granted, want 10", n)
		}
		results := atOnce(t, c, []*logv1.Acquire{
			clustertest.Acquire("hundred", 58), clustertest.Acquire("hundred", 80), clustertest.Acquire("hundred", 175),
			clustertest.Acquire("hundred", 175), clustertest.Acquire("hundred", 175),
		})
		if n := grants(results[:2]); n != 1 {
			t.Errorf("%d of 58 and 80 granted, want 1", n)
		}
		for _, r := range results[2:] {
			d, never := r.GetDenials(), logv1.Reason_REASON_EXCEEDS_BURST
			if r.GetGranted() || len(d) != 1 || d[0].GetReason() != never || d[0].GetRetryAfter() != 0 {
				t.Errorf("175 of a burst of 100: %v", r)
			}
		}
		// A key that nobody has used before.
		for i := range ops[:300] {
			ops[i] = clustertest.Acquire("keyed", 1)
			ops[i].Charges[0].Key = "new"
		}
		if n := grants(atOnce(t, c, ops[:300])); n != 10 {
			t.Errorf("%d of 300 granted for a new key, want 10", n)
		}
		c.RequireSameState()
	})
	t.Run("status_is_the_same_everywhere", func(t *testing.T) {
		leader := c.Leader()
		c.Eventually("records of all nodes", func() error {
			for _, name := range c.Names() {
				s := c.Node(name).Status()
				if s.Leader != leader || s.ClusterID == "" || s.Quorum != cluster.HasLeader || len(s.Nodes) != 3 || !s.Ready {
					return fmt.Errorf("%s: %+v", name, s)
				}
				for _, n := range s.Nodes {
					if n.GRPC != n.Name+":grpc" || n.HTTP != n.Name+":http" || n.Version != "test" ||
						n.Role != cluster.Voter || !n.Healthy {
						return fmt.Errorf("%s sees %+v", name, n)
					}
				}
			}
			return nil
		})
	})
	t.Run("a_fresh_read_sees_what_was_answered", func(t *testing.T) {
		for i := range 20 {
			limit := fmt.Sprintf("read-%d", i)
			c.ApplyLimits(c.Leader(), clustertest.Rate(limit, 1, time.Hour, 1))
			for _, name := range c.Names() {
				var found []*logv1.Limit
				if err := c.Node(name).View(t.Context(), false, func(m *fsm.Machine, _ bucket.Instant) {
					found, _ = m.Limits(limit)
				}); err != nil {
					t.Fatal(err)
				}
				if len(found) != 1 {
					t.Fatalf("%s does not see %s", name, limit)
				}
			}
		}
	})
}

func TestCrashes(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 3, clustertest.Options{})
	c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 100))
	t.Run("A18_T22_a_repeated_lease_id_at_any_node_is_charged_once", func(t *testing.T) {
		lease := clustertest.Track("gpt", 4)
		first := c.Decide(c.Leader(), lease)
		if !first.GetGranted() || first.GetRepeated() {
			t.Fatalf("got %v", first)
		}
		for range 2 {
			leader := c.Leader()
			c.Crash(leader)
			for _, name := range c.Running() {
				again := c.Decide(name, lease)
				if !again.GetGranted() || !again.GetRepeated() || again.GetRemaining()[0].GetTokens() != 96 {
					t.Fatalf("%s answers %v", name, again)
				}
			}
			c.Restart(leader)
			c.RequireSameState()
		}
		other := clustertest.Track("gpt", 5)
		other.LeaseId = lease.GetLeaseId()
		_, err := c.Node("b").Acquire(t.Context(), other, 0)
		var refused *fsm.Refused
		if !errors.As(err, &refused) || refused.GetCause() != logv1.Refusal_CAUSE_LEASE_CONFLICT {
			t.Fatalf("other content under the same id: %v", err)
		}
	})
	t.Run("all_at_once", func(t *testing.T) {
		before := c.RequireSameState()
		for _, name := range c.Names() {
			c.Crash(name)
		}
		for _, name := range c.Names() {
			c.Restart(name)
		}
		c.Leader()
		after := c.RequireSameState()
		if after.Index < before.Index || after.Now < before.Now {
			t.Fatalf("%+v became %+v", before, after)
		}
		if n := clustertest.Granted(t, c.Node("a"), "gpt"); n != 96 {
			t.Fatalf("%d granted, want the 96 that were left", n)
		}
	})
}

// A node that was away for longer than the log reaches back gets a snapshot,
// and the same state with it.
func TestCatchUpBySnapshot(t *testing.T) {
	t.Parallel()
	few := func(c *cluster.Config) { c.TrailingLogs, c.SnapshotBytes = 10, 1 }
	inBubble(t, few, func(b bubble) {
		t, c := b.T, b.Cluster
		c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1000))
		away := c.Followers()[0]
		c.Crash(away)
		lease := clustertest.Track("gpt", 5)
		c.Decide(c.Leader(), lease)
		for range 100 {
			c.Decide(c.Leader(), clustertest.Acquire("gpt", 1))
		}
		leader := c.Node(c.Leader())
		c.Eventually("a log that begins late", func() error {
			if first := leader.FirstIndex(); first < 50 {
				return fmt.Errorf("it begins at %d", first)
			}
			return nil
		})
		c.Restart(away)
		c.RequireSameState()
		// An acquire that was asked again in an election may have been charged twice.
		if r := c.Decide(away, lease); !r.GetRepeated() || r.GetRemaining()[0].GetTokens() > 895 {
			t.Fatalf("got %v", r)
		}
		// What was sent is as good as its own.
		c.Stop(away)
		c.Restart(away)
		c.RequireSameState()
	})
}
