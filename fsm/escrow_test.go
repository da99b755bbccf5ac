package fsm_test

import (
	"fmt"
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestG7NoEscrowChangesNothing: an ask that is given nothing leaves the state as it was,
// and histories with escrow have all that there is of it.
func TestG7NoEscrowChangesNothing(t *testing.T) {
	t.Parallel()
	t.Run("G7_G9", func(t *testing.T) {
		t.Parallel()
		seen := make(map[string]int)
		for seed := range uint64(20) {
			m, world := fsm.New(), fsmtest.Seeded(seed)
			world.Escrow, world.Tame, world.Feedback = true, seed%2 == 0, seed%4 == 3
			for range 250 {
				results, _ := m.Apply(m.Index()+1, world.Entry())
				for _, r := range results {
					if len(r.GetAcquire().GetPaid()) > 0 {
						seen["paid"]++
					}
				}
				op := world.Operation()
				if op.GetAskEscrow() == nil {
					continue
				}
				m.Apply(m.Index()+1, &logv1.Entry{})
				before := m.Hash()
				r := apply(m, op).GetEscrow()
				seen[fmt.Sprint(r.GetOutcome(), r.GetRepeated())]++
				given := r.GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED && !r.GetRepeated()
				if given == (m.Hash() == before) {
					t.Fatalf("seed=%d %v was answered %v, and the hash was %016x, is %016x", seed, op, r, before, m.Hash())
				}
			}
		}
		for _, one := range []string{
			"paid", "OUTCOME_GRANTED false", "OUTCOME_GRANTED true", "OUTCOME_CONTENDED false", "OUTCOME_NONE false",
			"OUTCOME_ENDED false", "OUTCOME_GONE false",
		} {
			if seen[one] == 0 {
				t.Errorf("%s: never; %v", one, seen)
			}
		}
	})
}
