package cluster_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
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
