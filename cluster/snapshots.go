package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// keepSnapshots takes the snapshots that raft's own count of entries doesn't:
// after many bytes, and after a long time with few entries (R14).
func (n *Node) keepSnapshots(stop <-chan struct{}) {
	ticker := time.NewTicker(snapshotCheck)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		bytes := n.fsm.sinceSnapshot.Load()
		if bytes == 0 {
			// A snapshot was just taken, or nothing happened.
			last = time.Now()
			continue
		}
		if bytes < n.config.SnapshotBytes && time.Since(last) < n.config.SnapshotEvery {
			continue
		}
		if err := n.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			// Refused while members change (R22): the next round tries again.
			n.logger.Warn("snapshot not taken", "err", err)
			continue
		}
		last = time.Now()
	}
}
