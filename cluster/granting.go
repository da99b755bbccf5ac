package cluster

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/grant"
)

// electionTimeout is that of raft at a multiplier of 1. failoverLeast is the least time
// for which the cluster is taken to be without a leader when it loses one.
const (
	electionTimeout = 500 * time.Millisecond
	failoverLeast   = 1500 * time.Millisecond
)

// newGrants returns what a node grants by itself. It knows its Raft id.
func (n *Node) newGrants() *grant.Office {
	return grant.New(grant.Config{
		Node: string(n.id), Elapsed: n.clock.Elapsed, Now: n.clock.Estimate,
		View: n.fsm.view, Revision: n.fsm.revision.Load,
		Failover: max(failoverLeast, 3*electionTimeout*time.Duration(n.config.RaftMultiplier)),
		Wanted:   n.waiting.Wanted,
		Answer:   func(it *door.Item, r *logv1.Result) { n.door.Answer(it, r, nil) },
		Propose: func(op *logv1.Operation, within time.Duration, done func(*logv1.Result, error)) {
			n.Submit(&Pending{Operation: op, Deadline: time.Now().Add(within), Done: done})
		},
	})
}
