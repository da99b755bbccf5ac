package cluster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// bubble is a cluster in virtual time, and its test.
type bubble struct {
	*testing.T
	*clustertest.Cluster
}

// inBubble runs three nodes in virtual time.
func inBubble(t *testing.T, configure func(*cluster.Config), test func(bubble)) {
	t.Helper()
	inBubbleOf(t, 3, configure, test)
}

func inBubbleOf(t *testing.T, count int, configure func(*cluster.Config), test func(bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(bubble{t, clustertest.New(t, count, clustertest.Options{
			InMemory: true,
			Configure: func(_ string, c *cluster.Config) {
				if configure != nil {
					configure(c)
				}
			},
		})})
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// others are the nodes but for those named.
func others(c *clustertest.Cluster, but ...string) []string {
	return slices.DeleteFunc(c.Names(), func(name string) bool { return slices.Contains(but, name) })
}

// depose makes another node the leader and returns its name.
func depose(c *clustertest.Cluster) string {
	old := c.Leader()
	c.Isolate(old)
	leader := c.Leader(others(c, old)...)
	c.Heal()
	return leader
}

// outcome is an answer to an operation that was handed in.
type outcome struct {
	result *logv1.Result
	err    error
	after  time.Duration
}

// submit hands in an acquire and returns where its answer comes.
func submit(n *cluster.Node, limit string, patience time.Duration) <-chan outcome {
	start := time.Now()
	done := make(chan outcome, 1)
	n.Submit(&cluster.Pending{
		Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: clustertest.Acquire(limit, 1)}},
		Deadline:  start.Add(patience),
		Done:      func(r *logv1.Result, err error) { done <- outcome{r, err, time.Since(start)} },
	})
	return done
}

func TestA19LeaderChanges(t *testing.T) {
	t.Parallel()
	t.Run("A19_leader_changes_do_not_renew", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			t, c := b.T, b.Cluster
			c.ApplyLimits("a", clustertest.Rate("slot", 1, 10*time.Second, 1))
			if !c.Decide("a", clustertest.Acquire("slot", 1)).GetGranted() {
				t.Fatal("the first is denied")
			}
			start := time.Now()
			for _, at := range []time.Duration{4, 6, 8} {
				pass(at*time.Second - time.Since(start))
				depose(c)
			}
			pass(9900*time.Millisecond - time.Since(start))
			granted := c.Decide(c.Leader(), clustertest.Acquire("slot", 1)).GetGranted()
			// The last election may have taken until it was time.
			if took := time.Since(start); granted && took < 10*time.Second {
				t.Fatalf("granted before its time, after %s", took)
			}
			// Each election costs no more than the age of the last entry.
			pass(13100*time.Millisecond - time.Since(start))
			if !granted && !c.Decide(c.Leader(), clustertest.Acquire("slot", 1)).GetGranted() {
				t.Fatalf("not granted after %s", time.Since(start))
			}
			c.RequireSameState()
		})
	})
	t.Run("T2_idle_time_is_not_lost", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			t, c := b.T, b.Cluster
			start, before := time.Now(), c.RequireSameState()
			pass(time.Minute)
			depose(c)
			pass(2 * time.Second)
			after := c.RequireSameState()
			passed, real := time.Duration(after.Now-before.Now), time.Since(start)
			if passed > real || passed < real-4*time.Second {
				t.Fatalf("authority time moved by %s in %s", passed, real)
			}
		})
	})
}

// Under random partitions no more is ever granted than the limit allows, and
// every lease that was acknowledged is there afterwards.
func TestG1UnderPartitions(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		const burst, perSecond = 20, 10
		c.ApplyLimits("a", clustertest.Rate("gpt", perSecond, time.Second, burst))
		start := time.Now()
		granted := 0
		var leases []*logv1.Acquire
		for round := range 30 {
			side := c.Names()[round%3]
			if round%4 != 3 {
				c.Partition(side)
			}
			for range 40 {
				for _, name := range c.Names() {
					op := clustertest.Track("gpt", 1)
					ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
					r, err := c.Node(name).Acquire(ctx, op, 0)
					cancel()
					if err == nil && r.GetGranted() {
						granted++
						leases = append(leases, op)
					}
				}
				pass(25 * time.Millisecond)
			}
			c.Heal()
			pass(time.Second)
			if most := burst + int(time.Since(start)*perSecond/time.Second); granted > most {
				t.Fatalf("%d granted after %s, at most %d", granted, time.Since(start), most)
			}
		}
		if granted < 100 {
			t.Errorf("only %d granted in %s", granted, time.Since(start))
		}
		c.Leader()
		for _, op := range leases[len(leases)-50:] {
			if r := c.Decide("a", op); !r.GetGranted() || !r.GetRepeated() {
				t.Fatalf("a lease that was acknowledged is gone: %v", r)
			}
		}
		c.RequireSameState()
	})
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	one := func(c *cluster.Config) { c.MaxPending = 4 }
	t.Run("R1_R2_on_a_leader_that_is_cut_off", func(t *testing.T) {
		t.Parallel()
		inBubble(t, one, func(b bubble) {
			t, c := b.T, b.Cluster
			c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Second, 10))
			leader := c.Leader()
			n := c.Node(leader)
			c.Isolate(leader)
			// The first goes into an entry at once; the others wait behind it.
			sent := submit(n, "gpt", time.Minute)
			synctest.Wait()
			hasty := submit(n, "gpt", 50*time.Millisecond)
			patient, last := submit(n, "gpt", time.Minute), submit(n, "gpt", time.Minute)
			if o := <-submit(n, "gpt", time.Minute); !errors.Is(o.err, cluster.ErrOverloaded) {
				t.Errorf("a fifth: %v, want overloaded", o.err)
			}
			o := <-hasty
			if !errors.Is(o.err, cluster.ErrDeadline) || cluster.MayHaveHappened(o.err) || o.after > time.Second/10 {
				t.Errorf("one whose deadline passed while it waited: %v after %s", o.err, o.after)
			}
			if o := <-sent; !errors.Is(o.err, cluster.ErrOutcomeUnknown) {
				t.Errorf("one that was proposed: %v", o.err)
			}
			for _, waiting := range []<-chan outcome{patient, last} {
				if o := <-waiting; o.err == nil || cluster.MayHaveHappened(o.err) {
					t.Errorf("one that waited: %v", o.err)
				}
			}
			pass(2 * time.Second)
			if o := <-submit(n, "gpt", time.Minute); !errors.Is(o.err, cluster.ErrNoQuorum) {
				t.Errorf("without a majority: %v", o.err)
			}
			if s := n.Status(); s.Quorum != cluster.NoQuorum || s.Ready {
				t.Errorf("status %+v", s)
			}
			c.Heal()
			c.RequireSameState()
		})
	})
	t.Run("R2_on_a_follower_of_a_leader_that_is_cut_off", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			t, c := b.T, b.Cluster
			c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Second, 10))
			leader := c.Leader()
			follower := c.Followers()[0]
			third := others(c, leader, follower)[0]
			// Both stay in touch with the follower's stream, but the leader has no
			// majority: what is sent is proposed and can't commit.
			c.Board.Cut(leader, third)
			c.Stop(third)
			deadline := submit(c.Node(follower), "gpt", time.Minute)
			synctest.Wait()
			c.Isolate(leader)
			if o := <-deadline; o.err != nil && !errors.Is(o.err, cluster.ErrOutcomeUnknown) {
				t.Errorf("one that was sent: %v", o.err)
			}
			c.Heal()
			c.Restart(third)
			c.Leader()
			if !c.Decide(follower, clustertest.Acquire("gpt", 1)).GetGranted() {
				t.Error("nothing is granted afterwards")
			}
			c.RequireSameState()
		})
	})
	t.Run("T25_an_election_revives_nobody", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			t, c := b.T, b.Cluster
			c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 10))
			old := c.Leader()
			n := c.Node(old)
			c.Isolate(old)
			sent := submit(n, "gpt", time.Minute)
			synctest.Wait()
			waiting := submit(n, "gpt", time.Minute)
			<-sent
			<-waiting
			c.Heal()
			for c.Leader() != old {
				depose(c)
				pass(5 * time.Second)
			}
			// Both were answered with an error. The one that had been proposed
			// may have happened; the other must not have.
			left := clustertest.Granted(t, n, "gpt")
			if left < 9 {
				t.Errorf("%d of 10 are left: both were charged", left)
			}
		})
	})
}

func TestG8QuorumLost(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		leader := c.Leader()
		from := uint64(0)
		sub, err := c.Node(leader).Events().Subscribe(&from)
		if err != nil {
			t.Fatal(err)
		}
		depose(c)
		pass(5 * time.Second)
		c.Partition("a")
		c.Partition("b")
		pass(5 * time.Second)
		c.Heal()
		pass(5 * time.Second)
		counts := make(map[string]int)
		for {
			e, ok, err := sub.TryNext()
			if err != nil || !ok {
				break
			}
			counts[string(e.Kind)]++
		}
		if counts["QuorumLost"] > 2 || counts["QuorumLost"] != counts["QuorumRestored"] || counts["QuorumLost"] < 1 {
			t.Fatalf("events %v", counts)
		}
	})
}

// A leader that is stopped in good order hands over first: nobody waits for a
// timeout.
func TestR10GracefulStop(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Second, 10))
		for range 3 {
			old := c.Leader()
			c.Stop(old)
			start := time.Now()
			if !c.Decide(c.Leader(), clustertest.Acquire("gpt", 1)).GetGranted() {
				t.Fatal("denied")
			}
			if took := time.Since(start); took > 400*time.Millisecond {
				t.Errorf("without a leader for %s after a stop in good order", took)
			}
			c.Restart(old)
			c.RequireSameState()
			pass(2 * time.Second)
		}
	})
}

// A transfer that fails leaves a leader that serves again.
func TestR10TransferThatFails(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Second, 10))
		leader, target := c.Leader(), c.Followers()[0]
		c.Board.Cut(leader, target)
		var id, address string
		for _, node := range c.Node(leader).Status().Nodes {
			if node.Name == target {
				id, address = node.RaftID, node.Peer
			}
		}
		n := c.Node(leader)
		// The target lags now, and the transfer waits for it in vain.
		c.Decide(leader, clustertest.Acquire("gpt", 1))
		transfer := n.Raft().LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(address))
		synctest.Wait()
		// raft refuses everything meanwhile: it did not happen.
		if o := <-submit(n, "gpt", time.Minute); o.err == nil || cluster.MayHaveHappened(o.err) {
			t.Errorf("during the transfer: %v", o.err)
		}
		if err := transfer.Error(); err == nil {
			t.Fatal("the transfer to a node that can't be reached succeeded")
		}
		if r := c.Decide(c.Leader(), clustertest.Acquire("gpt", 1)); !r.GetGranted() || !n.Leads() {
			t.Errorf("%v, %s leads: %t", r, leader, n.Leads())
		}
	})
}

// A node that was cut off and comes back disturbs nobody.
func TestR11PreVote(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		leader, follower := c.Leader(), c.Followers()[0]
		term := c.Node(leader).Status().Term
		c.Isolate(follower)
		pass(10 * time.Second)
		c.Heal()
		pass(5 * time.Second)
		c.RequireSameState()
		if s := c.Node(follower).Status(); s.Term != term || s.Leader != leader {
			t.Errorf("%s led in term %d, now %s leads in term %d", leader, term, s.Leader, s.Term)
		}
	})
}
