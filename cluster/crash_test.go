package cluster_test

import (
	"testing"
	"time"
)

// Where the process of the leader has ended another node leads long before Raft's own
// timeouts, and there is nothing to notice of a follower that ends.
func TestACrashedLeaderIsSucceededEarly(t *testing.T) {
	t.Parallel()
	// The leader's lease, a heartbeat that was due, the order in which the others
	// ask for votes, and what it takes to look.
	const soon = 250*time.Millisecond + 100*time.Millisecond + 2*40*time.Millisecond + 60*time.Millisecond
	inBubbleOf(t, 5, nil, func(b bubble) {
		for range 2 {
			leader := b.Leader()
			pass(3 * time.Second)
			began := time.Now()
			b.Board.End(leader)
			next := b.Leader(others(b.Cluster, leader)...)
			took := time.Since(began)
			b.Logf("%s led after %v", next, took)
			if took > soon {
				b.Errorf("%s led %v after %s had ended, want %v at most", next, took, leader, soon)
			}
			b.Stop(leader)
			b.Restart(leader)
			pass(3 * time.Second)
			if now := b.Leader(); now != next {
				b.Errorf("%s leads after %s came back, want %s", now, leader, next)
			}
		}
		leader, follower := b.Leader(), b.Followers()[0]
		b.Crash(follower)
		pass(3 * time.Second)
		if now := b.Leader(others(b.Cluster, follower)...); now != leader {
			b.Errorf("%s leads after a follower has ended, want %s", now, leader)
		}
	})
}
