package cluster_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// A member that was removed stops, and says so; it does not come back with the same
// data directory, nor is it taken back with it (R33).
func TestR33RemovedNodeStops(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leader_%t", leads), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(b bubble) {
				t, c := b.T, b.Cluster
				gone := c.Followers()[0]
				if leads {
					gone = c.Leader()
				}
				c.Remove(gone)
				if _, err := cluster.Open(t.Context(), c.Config(gone)); !errors.Is(err, cluster.ErrRemoved) {
					t.Fatalf("started again: %v, want %v", err, cluster.ErrRemoved)
				}
			})
		})
	}
}

// A member that is away while it is removed has no way to hear of it from raft.
func TestR33RemovedWhileAwayStops(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		gone := c.Followers()[0]
		c.Crash(gone)
		c.Remove(gone)
		n := c.Restart(gone)
		<-n.Done()
		if !errors.Is(n.Err(), cluster.ErrRemoved) {
			t.Fatalf("got %v, want %v", n.Err(), cluster.ErrRemoved)
		}
		c.Forget(gone)
	})
}

// raft stops a leader that removes itself, which no verb of ours asks for.
func TestR33RaftRemovesALeader(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 3, clustertest.Options{})
	gone := c.Leader()
	n := c.Node(gone)
	id := ""
	for _, node := range n.Status().Nodes {
		if node.Name == gone {
			id = node.RaftID
		}
	}
	if err := n.Raft().RemoveServer(raft.ServerID(id), 0, time.Second).Error(); err != nil {
		t.Fatal(err)
	}
	<-n.Done()
	if !errors.Is(n.Err(), cluster.ErrRemoved) {
		t.Fatalf("got %v, want %v", n.Err(), cluster.ErrRemoved)
	}
}
