package cluster

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster/form"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// What can be said of an operation that got no result. Everything but
// ErrOutcomeUnknown says that the operation was not proposed, so it did not
// happen; MayHaveHappened tells them apart.
var (
	// ErrNoLeader: a majority is there, but it has no leader. An election is
	// under way, or the cluster is being formed.
	ErrNoLeader = outcome.ErrNoLeader
	// ErrNoQuorum: fewer than a majority of the voters can be reached.
	ErrNoQuorum = outcome.ErrNoQuorum
	// ErrOutcomeUnknown: the operation was proposed and nobody can say whether
	// it will commit. Repeat it with the same lease id (G4).
	ErrOutcomeUnknown = outcome.ErrUnknown
	// ErrOverloaded: as many operations wait as the node takes.
	ErrOverloaded = outcome.ErrOverloaded
	// ErrDiskLow: the leader's disk is nearly full; it proposes nothing more.
	ErrDiskLow = outcome.ErrDiskLow
	// ErrClosed: the node is closed or closing.
	ErrClosed = outcome.ErrClosed
	// ErrDeadline: the deadline passed first. Where the operation had been
	// proposed the error is ErrOutcomeUnknown as well.
	ErrDeadline = outcome.ErrDeadline
)

// Why a node stopped itself; Err wraps one of them.
var (
	// ErrProtected: going on could lose or fork data. A supervisor may start the
	// node again; a person has to look.
	ErrProtected = errors.New("stopped to protect data")
	// ErrRemoved: the cluster removed this member. Starting it again is useless.
	ErrRemoved = errors.New("this node was removed from the cluster")
	// ErrRefused: the node can't form or join a cluster the way it was started.
	ErrRefused = form.ErrRefused
)

// MayHaveHappened reports whether the operation that ended with err may have
// been, or may yet be, applied. A nil error means that it was.
func MayHaveHappened(err error) bool { return outcome.MayHaveHappened(err) }

// classify sorts what raft says of a proposal into its three classes (R2): nil
// for applied, ErrNotLeader for not applied, ErrOutcomeUnknown for the rest.
// ErrRaftShutdown is unknown although it can also mean that nothing was
// enqueued: raft uses the same value for entries that have already committed.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrAbortedByRestore):
		return fmt.Errorf("%w: %w", outcome.ErrNotLeader, err)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}
