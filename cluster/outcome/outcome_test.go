package outcome

import (
	"errors"
	"fmt"
	"testing"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
)

// What an error says of whether the operation may have happened survives the
// way through another node.
func TestFailureKeepsItsClass(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		ErrNoLeader, ErrNoQuorum, ErrUnknown, ErrOverloaded, ErrDiskLow, ErrClosed, ErrNotLeader,
		ErrDeadlineWaiting, ErrDeadlineProposed, ErrCanceledWaiting, ErrCanceledProposed,
		ErrClosedProposed, fmt.Errorf("raft: %w", ErrUnknown), errors.New("a bug"),
	} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			back := ErrorOf(FailureOf(err))
			known := err.Error() != "a bug"
			if got, want := MayHaveHappened(back), MayHaveHappened(err) || !known; got != want {
				t.Fatalf("%v came back as %v: may have happened %t, want %t", err, back, got, want)
			}
		})
	}
	for kind := range peerv1.Failure_Kind_name {
		if ErrorOf(&peerv1.Failure{Kind: peerv1.Failure_Kind(kind)}) == nil {
			t.Errorf("kind %s has no error", peerv1.Failure_Kind(kind))
		}
	}
	for kind, err := range back {
		if got := FailureOf(err).GetKind(); got != kind {
			t.Errorf("%v is sent as %s, want %s", err, got, kind)
		}
	}
}
