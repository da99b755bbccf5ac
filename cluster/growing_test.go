package cluster_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/disk"
)

// amid asks a follower for a change, and crashes the leader while it is made. It
// makes sure that the change is made in the end.
func amid(
	b bubble, random *rand.Rand, what string, change func(context.Context, *cluster.Node) (cluster.Change, error),
) {
	b.Helper()
	c := b.Cluster
	asked := c.Node(c.Followers()[0])
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Whatever comes of it: it is asked for again.
		_, _ = change(ctx, asked)
	}()
	pass(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
	leader := c.Leader()
	c.Crash(leader)
	pass(time.Duration(random.Int64N(int64(2 * time.Second))))
	c.Restart(leader)
	<-done
	c.Change(what, func(ctx context.Context) (cluster.Change, error) { return change(ctx, c.Node(c.Leader())) })
}

// Three become five and three again, and again, with the leader lost in the middle of
// each change: each change is made in the end, nothing that was acknowledged is lost
// (G4), and all have one state (G9).
func TestG4MembersChangeWhileLeadersAreLost(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		//nolint:gosec // The moments of crashes are no secret.
		random := rand.New(rand.NewPCG(1, 1))
		c.ApplyLimits("a", clustertest.Rate("gpt", 0, time.Hour, 1000))
		taken := int64(0)
		for range 3 {
			lease := clustertest.Track("gpt", 1)
			c.Decide(c.Leader(), lease)
			taken++
			for range 2 {
				name := c.Wait()
				amid(b, random, "add "+name, func(ctx context.Context, n *cluster.Node) (cluster.Change, error) {
					return n.AddMember(ctx, name, c.Peer(name))
				})
				amid(b, random, "promote "+name, func(ctx context.Context, n *cluster.Node) (cluster.Change, error) {
					return n.Promote(ctx, name)
				})
			}
			c.RequireSameState()
			for range 2 {
				c.Remove(c.Running()[random.IntN(len(c.Running()))])
			}
			again := c.Decide(c.Leader(), lease)
			if left := again.GetRemaining()[0].GetTokens(); !again.GetRepeated() || left != 1000-taken {
				t.Fatalf("%d left, want %d: %v", left, 1000-taken, again)
			}
			c.RequireSameState()
		}
	})
}

// Of changes that are asked for at once each is made or refused, one after the other: in
// the log each configuration differs from the last in one member (R31).
func TestR31OneChangeAtATime(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		d, e := c.Wait(), c.Wait()
		pass(time.Second)
		leader := c.Leader()
		learner := others(c, leader, d, e)[0]
		var asking sync.WaitGroup
		for i, change := range []func(context.Context, *cluster.Node) (cluster.Change, error){
			func(ctx context.Context, n *cluster.Node) (cluster.Change, error) {
				return n.AddMember(ctx, d, c.Peer(d))
			},
			func(ctx context.Context, n *cluster.Node) (cluster.Change, error) {
				return n.AddMember(ctx, e, c.Peer(e))
			},
			func(ctx context.Context, n *cluster.Node) (cluster.Change, error) { return n.Demote(ctx, learner) },
			func(ctx context.Context, n *cluster.Node) (cluster.Change, error) { return n.Demote(ctx, leader) },
		} {
			n := c.Node(c.Names()[i%3])
			asking.Go(func() {
				for ctx := t.Context(); ; pass(10 * time.Millisecond) {
					_, err := change(ctx, n)
					if !errors.Is(err, cluster.ErrChanging) {
						if err != nil {
							t.Errorf("change %d: %v", i, err)
						}
						return
					}
				}
			})
		}
		asking.Wait()
		c.RequireSameState()
		c.Stop(learner)
		var before []disk.Member
		found := 0
		if err := disk.Read(c.Dir(learner), disk.Visitor{
			Entry: func(uint64, uint64, []byte) error { return nil },
			Members: func(index, _ uint64, after []disk.Member) error {
				same := slices.DeleteFunc(slices.Clone(after), func(m disk.Member) bool { return !slices.Contains(before, m) })
				if found++; before != nil && (len(same) < len(after)-1 || len(same) < len(before)-1) {
					t.Errorf("entry %d makes %v of %v", index, after, before)
				}
				before = after
				return nil
			},
		}); err != nil || found != 5 {
			t.Errorf("%d configurations, want 5: %v", found, err)
		}
	})
}
