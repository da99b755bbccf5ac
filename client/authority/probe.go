package authority

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/failopen"
)

const (
	// probePatience is how long a probe waits for its answer, unless callers have
	// less patience.
	probePatience = 500 * time.Millisecond
	// probeMin and probeMax are the pauses between probes: they grow while nobody
	// answers, and are short again once somebody does, so that a client is back
	// within a second or two.
	probeMin = 20 * time.Millisecond
	probeMax = 250 * time.Millisecond
)

// probe asks the authority for as long as there is doubt about it: it finds out
// that it is lost although nobody calls any more, and that it is back although
// nobody waits for it (G8).
func (a *Authority) probe(ctx context.Context) {
	for {
		select {
		case <-a.doubt:
		case <-ctx.Done():
			return
		}
		wait := probeMin
		for first := true; first || a.machine.State() != failopen.Healthy; first = false {
			if a.probeOnce(ctx) {
				wait = probeMin
			} else {
				wait = min(wait*3/2, probeMax)
			}
			// A quarter more or less, so that many clients do not ask in step.
			if !Pause(ctx, wait*3/4+rand.N(wait/2)) {
				return
			}
		}
	}
}

// probeOnce asks once. It settles a lease that does not exist: that takes a
// committed entry, as a grant does, and changes nothing. A node that merely
// answers, from memory, would be no proof.
func (a *Authority) probeOnce(ctx context.Context) bool {
	within := probePatience
	// Who answers more slowly than callers wait is away for them, and must not look
	// as if it were back (A20).
	if known := a.patience.Of(time.Now()); known > 0 {
		within = min(within, known)
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	message := &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Settle{
		Settle: &quorleasev1.SettleRequest{LeaseId: a.config.Members.SessionID},
	}}
	_, err := a.Ask(bounded, &Question{Message: message, patient: true})
	return !errors.Is(err, ErrUnanswered) && !errors.Is(err, ErrClosed) && ctx.Err() == nil
}
