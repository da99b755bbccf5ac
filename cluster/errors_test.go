package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/probe"
)

// Every error that raft can answer a proposal with falls into one of three
// classes.
func TestR2OutcomeClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want error
	}{
		{nil, nil},
		{raft.ErrNotLeader, outcome.ErrNotLeader},
		{raft.ErrEnqueueTimeout, outcome.ErrNotLeader},
		{raft.ErrLeadershipTransferInProgress, outcome.ErrNotLeader},
		{raft.ErrAbortedByRestore, outcome.ErrNotLeader},
		{raft.ErrLeadershipLost, ErrOutcomeUnknown},
		{raft.ErrRaftShutdown, ErrOutcomeUnknown},
		{errors.New("write log: no space left on device"), ErrOutcomeUnknown},
		{context.DeadlineExceeded, ErrOutcomeUnknown},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			t.Parallel()
			got := classify(c.err)
			if !errors.Is(got, c.want) || c.err != nil && !errors.Is(got, c.err) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			if may, want := MayHaveHappened(got), c.want == nil || errors.Is(c.want, ErrOutcomeUnknown); may != want {
				t.Fatalf("may have happened: %t, want %t", may, want)
			}
		})
	}
}

// A read changes nothing: whatever the leader said, it may not have happened.
func TestReadIsNeverOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	n := newNode(DefaultConfig())
	n.prober = probe.New(probe.Config{})
	for _, cause := range []error{
		outcome.ErrUnknown, outcome.ErrDeadlineProposed, outcome.ErrNotLeader, outcome.ErrClosed,
		fmt.Errorf("%w: peer: of a newer program", outcome.ErrUnknown),
	} {
		err := n.readFailure(t.Context(), cause)
		if MayHaveHappened(err) || !errors.Is(err, ErrNoLeader) {
			t.Errorf("%v: got %v", cause, err)
		}
	}
}
