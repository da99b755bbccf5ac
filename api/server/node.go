package server

import (
	"context"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	shown "github.com/quorlease/quorlease/api/server/overview"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/escrow"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/usage"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Admitter is a node's single door for operations.
type Admitter interface {
	// Do waits for the result. A refusal is a *fsm.Refused.
	Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error)
	// Await is Do for an operation that says more.
	Await(ctx context.Context, p *cluster.Pending) (*logv1.Result, error)
	// Submit does not wait; it calls Done once. A refusal is a result there.
	Submit(*cluster.Pending)
	// Cancel says that nobody waits for it any more.
	Cancel(*cluster.Pending)
	// Grant answers what needs no log entry, and is nil for the rest.
	Grant(*cluster.Pending, *escrow.Room) *logv1.Result
}

// Viewer reads the replicated state.
type Viewer interface {
	// View calls read at once where stale, else when this node has applied all
	// that was committed when it was asked.
	View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error
	// Revision is that of the limits that this node has applied. It costs nothing.
	Revision() uint64
}

// Observer says how the cluster looks from here.
type Observer interface {
	Status() cluster.Status
	// Queues are what waits at a key of a limit, as the leader says: nothing where it
	// does not answer. Without a limit they are those of the key of each limit where
	// most wait.
	Queues(ctx context.Context, limit, key string) []queue.ClassState
	// Usage is what the nodes' answers granted and denied, as far as they say.
	Usage(ctx context.Context, q usage.Query) usage.Answer
	// Overview is what the node remembers of the last hour.
	Overview() *overview.Book
}

// Counter counts what clients did by permits that they held.
type Counter interface {
	// CountTried counts for the client's retry budget, by differences.
	CountTried(client string, tried retries.Tried)
}

// Node is what the services need of a node. *cluster.Node is one.
type Node interface {
	Admitter
	Viewer
	Observer
	Counter
	shown.Changer
}
