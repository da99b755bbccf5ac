// Package outcome names what can be said of an operation that got no result,
// and keeps the names over the hop from one node to another.
//
// Every error says whether the operation may have happened: only what wraps
// ErrOutcomeUnknown may have.
package outcome

import (
	"context"
	"errors"
	"fmt"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
)

// The outcomes. Package cluster exports those that callers meet.
var (
	// ErrNoLeader: a majority is there, but it has no leader.
	ErrNoLeader = errors.New("no leader")
	// ErrNoQuorum: fewer than a majority of the voters can be reached.
	ErrNoQuorum = errors.New("no quorum: a majority of the voters can't be reached")
	// ErrUnknown: the operation was proposed and nobody can say whether it will
	// commit.
	ErrUnknown = errors.New("outcome unknown: it was proposed, and may or may not have happened")
	// ErrOverloaded: as many operations wait as the node takes.
	ErrOverloaded = errors.New("overloaded: too many operations are waiting")
	// ErrDiskLow: the leader's disk is nearly full.
	ErrDiskLow = errors.New("disk low: nothing is proposed until space is freed")
	// ErrClosed: the node is closed or closing.
	ErrClosed = errors.New("the node is closed")
	// ErrDeadline: the deadline passed first.
	ErrDeadline = errors.New("deadline passed")
	// ErrNotLeader: the node asked does not lead, or not yet. The operation was
	// not proposed and may be sent to another node. It stays among nodes.
	ErrNotLeader = errors.New("this node does not lead")
)

// How an operation that waits can end without having been proposed, and one
// that was proposed without a result.
var (
	ErrDeadlineWaiting  = fmt.Errorf("%w before it was proposed", ErrDeadline)
	ErrDeadlineProposed = fmt.Errorf("%w: %w", ErrDeadline, ErrUnknown)
	ErrCanceledWaiting  = fmt.Errorf("%w before it was proposed", context.Canceled)
	ErrCanceledProposed = fmt.Errorf("%w: %w", context.Canceled, ErrUnknown)
	ErrClosedProposed   = fmt.Errorf("%w: %w", ErrClosed, ErrUnknown)
)

// Leaderless is ErrNoLeader with its reason: of a node that knows of no voter, that
// there is no cluster yet.
func Leaderless(voters int) error {
	why := "an election is under way"
	if voters == 0 {
		why = "this node is in no cluster yet, its log says what it waits for"
	}
	return fmt.Errorf("%w: %s", ErrNoLeader, why)
}

// MayHaveHappened reports whether the operation that ended with err may have
// been, or may yet be, applied. A nil error means that it was.
func MayHaveHappened(err error) bool { return err == nil || errors.Is(err, ErrUnknown) }

// failures pairs what a peer says over the wire with the error it stands for.
// The first row that fits an error counts, so the narrower ones come first.
var failures = []struct {
	kind peerv1.Failure_Kind
	err  error
}{
	{peerv1.Failure_KIND_DEADLINE, ErrDeadlineProposed},
	{peerv1.Failure_KIND_OUTCOME_UNKNOWN, ErrUnknown},
	// Not proposed, and it is the asking node's own deadline that ends it there.
	{peerv1.Failure_KIND_NOT_LEADER, ErrDeadlineWaiting},
	{peerv1.Failure_KIND_NOT_LEADER, ErrCanceledWaiting},
	{peerv1.Failure_KIND_NOT_LEADER, ErrNotLeader},
	{peerv1.Failure_KIND_NO_LEADER, ErrNoLeader},
	{peerv1.Failure_KIND_NO_QUORUM, ErrNoQuorum},
	{peerv1.Failure_KIND_OVERLOADED, ErrOverloaded},
	{peerv1.Failure_KIND_DISK_LOW, ErrDiskLow},
	{peerv1.Failure_KIND_CLOSED, ErrClosed},
}

// back is the error for each kind.
var back = map[peerv1.Failure_Kind]error{
	peerv1.Failure_KIND_DEADLINE:        ErrDeadlineProposed,
	peerv1.Failure_KIND_OUTCOME_UNKNOWN: ErrUnknown,
	peerv1.Failure_KIND_NOT_LEADER:      ErrNotLeader,
	peerv1.Failure_KIND_NO_LEADER:       ErrNoLeader,
	peerv1.Failure_KIND_NO_QUORUM:       ErrNoQuorum,
	peerv1.Failure_KIND_OVERLOADED:      ErrOverloaded,
	peerv1.Failure_KIND_DISK_LOW:        ErrDiskLow,
	peerv1.Failure_KIND_CLOSED:          ErrClosed,
}

// FailureOf turns an error into what is sent to a peer.
func FailureOf(err error) *peerv1.Failure {
	kind := peerv1.Failure_KIND_INTERNAL
	for _, row := range failures {
		if errors.Is(err, row.err) {
			kind = row.kind
			break
		}
	}
	return &peerv1.Failure{Kind: kind, Message: err.Error()}
}

// ErrorOf is the inverse of FailureOf. A kind that this program does not know
// comes from a newer one and may mean anything: the outcome is unknown.
func ErrorOf(f *peerv1.Failure) error {
	if err := back[f.GetKind()]; err != nil {
		return err
	}
	return fmt.Errorf("%w: peer: %s", ErrUnknown, f.GetMessage())
}
