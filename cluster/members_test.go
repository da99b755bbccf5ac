package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/events"
)

// roles are the members as every running node sees them, "a b c/d" with learners
// behind the slash.
func roles(c *clustertest.Cluster) string {
	seen := ""
	c.Eventually("one view of the members", func() error {
		seen = ""
		for _, name := range c.Running() {
			var voters, learners []string
			for _, n := range c.Node(name).Status().Nodes {
				if n.Role == cluster.Voter {
					voters = append(voters, n.Name)
				} else {
					learners = append(learners, n.Name)
				}
			}
			one := strings.Join(voters, " ") + "/" + strings.Join(learners, " ")
			if seen != "" && one != seen {
				return fmt.Errorf("%s sees %q, another %q", name, one, seen)
			}
			seen = one
		}
		return nil
	})
	return seen
}

func wantRoles(t *testing.T, c *clustertest.Cluster, want string) {
	t.Helper()
	if got := roles(c); got != want {
		t.Fatalf("the members are %q, want %q", got, want)
	}
}

// memberEvents are those of members that a node has published, in order.
func memberEvents(n *cluster.Node) (list []string) {
	first := uint64(0)
	s, err := n.Events().Subscribe(&first)
	if err != nil {
		return []string{err.Error()}
	}
	for {
		e, ok, err := s.TryNext()
		if err != nil || !ok {
			return list
		}
		if e.Kind == events.MemberAdded || e.Kind == events.MemberRemoved {
			list = append(list, string(e.Kind)+" "+e.Value)
		}
	}
}

// Three become five and three again while acquires are granted; two of those who were
// there first are lost at once in between, and nothing that was acknowledged is (G1,
// G4, R31).
func TestG4ThreeFiveThree(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		c.ApplyLimits("a", clustertest.Rate("gpt", 0, time.Hour, 1000))
		spent := int64(0)
		lease := clustertest.Track("gpt", 5)
		take := func(name string) {
			t.Helper()
			spent++
			if r := c.Decide(name, clustertest.Track("gpt", 1)); r.GetRemaining()[0].GetTokens() != 995-spent {
				t.Fatalf("%d left, want %d", r.GetRemaining()[0].GetTokens(), 995-spent)
			}
		}
		c.Decide("b", lease)
		d := c.Grow(false)
		wantRoles(t, c, "a b c/d")
		take(d)
		c.Change("promote d", func(ctx context.Context) (cluster.Change, error) { return c.Node("b").Promote(ctx, d) })
		e := c.Grow(true)
		wantRoles(t, c, "a b c d e/")
		take(e)
		c.RequireSameState()
		c.Crash("a")
		c.Crash("b")
		c.Leader("c", "d", "e")
		take("c")
		if again := c.Decide("d", lease); !again.GetRepeated() {
			t.Fatalf("what was acknowledged is gone: %v", again)
		}
		c.Restart("a")
		c.Restart("b")
		c.RequireSameState()
		for _, name := range []string{"b", c.Leader()} {
			c.Remove(name)
			take(c.Running()[0])
		}
		c.RequireSameState()
		c.Eventually("an event for each who came or went, once", func() error {
			for _, name := range c.Running() {
				got := memberEvents(c.Node(name))
				slices.Sort(got)
				if unique := slices.Compact(slices.Clone(got)); len(got) != 7 || len(unique) != 7 {
					return fmt.Errorf("%s has %q", name, got)
				}
			}
			return nil
		})
	})
}

// Who comes when all that formed the cluster have gone reads of them first, in a log
// that does not name who leads now, and must not take itself for removed.
func TestR33JoinsAfterAllFoundersLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1000))
		for range 3 {
			c.Grow(true)
		}
		for _, name := range []string{"a", "b", "c"} {
			c.Remove(name)
		}
		wantRoles(t, c, "d e f/")
		g := c.Wait()
		for range 3 {
			// Again before it has read of whoever asks it: the answer may have been lost.
			c.Change("add g", func(ctx context.Context) (cluster.Change, error) {
				return c.Node("e").AddMember(ctx, g, c.Peer(g))
			})
		}
		wantRoles(t, c, "d e f/g")
		c.RequireSameState()
		// One that restarts before it has read of itself is in the same place.
		c.Stop(g)
		c.Restart(g)
		c.RequireSameState()
		if !c.Decide(g, clustertest.Acquire("gpt", 1)).GetGranted() {
			t.Error("not granted")
		}
	})
}

// refusedWith asks for a change that must not be made.
func refusedWith(t *testing.T, want error, says string, change func(context.Context, string) (cluster.Change, error),
	name string,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if got, err := change(ctx, name); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %+v, %v, want %v that says %q", got, err, want, says)
	}
}

func TestR31ChangesThatAreRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		d := c.Grow(false)
		n := c.Node(c.Followers()[0])
		refusedWith(t, cluster.ErrNotReady, "10 s are needed", n.Promote, d)
		refusedWith(t, cluster.ErrUnknownMember, "z", n.RemoveMember, "z")
		refusedWith(t, cluster.ErrChangeRefused, "d is a learner", n.TransferLeadership, d)
		away := c.Followers()[1]
		if away == d {
			away = c.Followers()[2]
		}
		if n == c.Node(away) {
			away = c.Followers()[0]
			n = c.Node(c.Leader())
		}
		c.Crash(away)
		pass(time.Second)
		refusedWith(t, cluster.ErrChangeRefused, away+" does not answer", n.RemoveMember, c.Leader())
		refusedWith(t, cluster.ErrChangeRefused, away+" does not answer", n.TransferLeadership, away)
		// The one that is away may go, and a learner that keeps up may take its place.
		c.Remove(away)
		c.Change("promote d", func(ctx context.Context) (cluster.Change, error) { return n.Promote(ctx, d) })
		if got := roles(c); strings.Count(got, " ") != 2 || !strings.HasSuffix(got, "d/") {
			t.Errorf("the members are %q", got)
		}
		// It was so before: nothing changes, and nothing is wrong.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if got, err := n.Promote(ctx, d); err != nil || got.Changed {
			t.Errorf("promoted again: %+v, %v", got, err)
		}
	})
}

// A disk that was lost does not come back under its name before somebody has removed
// what it was, and then as another incarnation (R37).
func TestR37AWipedNodeComesBackAsAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		gone := c.Followers()[0]
		before := c.Node(gone).Status()
		c.Crash(gone)
		c.Wipe(gone)
		n := c.Restart(gone)
		<-n.Done()
		if err := n.Err(); !errors.Is(err, cluster.ErrRefused) || !strings.Contains(err.Error(), "remove it first") {
			t.Fatalf("it stopped with %v", err)
		}
		_ = n.Close()
		c.Forget(gone)
		c.Remove(gone)
		c.Restart(gone)
		c.Add(gone)
		c.Change("promote", func(ctx context.Context) (cluster.Change, error) {
			return c.Node(gone).Promote(ctx, gone)
		})
		wantRoles(t, c, "a b c/")
		c.RequireSameState()
		for _, now := range c.Node(c.Leader()).Status().Nodes {
			if now.Name == gone && slices.ContainsFunc(before.Nodes, func(old cluster.NodeStatus) bool {
				return old.RaftID == now.RaftID
			}) {
				t.Errorf("%s is a member again", now.RaftID)
			}
		}
	})
}

func TestR10TheLeadershipIsHandedOver(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		old := c.Leader()
		to := c.Followers()[1]
		got := c.Change("transfer", func(ctx context.Context) (cluster.Change, error) {
			return c.Node(c.Followers()[0]).TransferLeadership(ctx, to)
		})
		if now := c.Leader(); now != to || !got.Changed || got.Leader != to {
			t.Errorf("%s leads after %s, want %s: %+v", now, old, to, got)
		}
		got = c.Change("transfer to any", func(ctx context.Context) (cluster.Change, error) {
			return c.Node(to).TransferLeadership(ctx, "")
		})
		if now := c.Leader(); now == to || !got.Changed || got.Leader != now {
			t.Errorf("%s leads, %+v", now, got)
		}
		leader := c.Leader()
		c.Change("demote the leader", func(ctx context.Context) (cluster.Change, error) {
			return c.Node(leader).Demote(ctx, leader)
		})
		if now := c.Leader(); now == leader {
			t.Errorf("the learner %s leads", now)
		}
		if got := roles(c); !strings.HasSuffix(got, "/"+leader) {
			t.Errorf("the members are %q", got)
		}
		c.RequireSameState()
	})
}

// A member that comes back at another address is followed there, and so is its record
// (R35).
func TestR35AMemberMoves(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		name := c.Followers()[0]
		c.Stop(name)
		c.Moved(name)
		c.Restart(name)
		c.Add(name)
		c.RequireSameState()
		wantRoles(t, c, "a b c/")
		c.Eventually("the new address everywhere", func() error {
			for _, at := range c.Running() {
				for _, n := range c.Node(at).Status().Nodes {
					if n.Name == name && (n.Peer != c.Peer(name) || !n.Healthy) {
						return fmt.Errorf("%s sees %+v", at, n)
					}
				}
			}
			return nil
		})
	})
}

// What the members are is in the snapshot too: after everybody has forgotten the entries
// that say so and was started again, who joins is told, and a change can be made.
func TestMembersAfterASnapshot(t *testing.T) {
	t.Parallel()
	few := func(c *cluster.Config) { c.TrailingLogs, c.SnapshotBytes = 10, 1 }
	inBubble(t, few, func(b bubble) {
		t, c := b.T, b.Cluster
		c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1000))
		forget := func() {
			t.Helper()
			for range 100 {
				c.Decide(c.Leader(), clustertest.Acquire("gpt", 1))
			}
			c.Eventually("logs that begin late", func() error {
				for _, name := range c.Running() {
					if first := c.Node(name).FirstIndex(); first < 50 {
						return fmt.Errorf("that of %s begins at %d", name, first)
					}
				}
				return nil
			})
		}
		forget()
		for _, name := range c.Names() {
			c.Crash(name)
		}
		for _, name := range c.Names() {
			c.Restart(name)
		}
		d := c.Grow(true)
		wantRoles(t, c, "a b c d/")
		c.Remove("a")
		wantRoles(t, c, "b c d/")
		// A learner whose log begins with the snapshot finds itself there.
		e := c.Grow(false)
		c.Stop(e)
		c.Restart(e)
		c.RequireSameState()
		wantRoles(t, c, "b c d/e")
		c.Stop(d)
		c.Restart(d)
		c.RequireSameState()
	})
}
