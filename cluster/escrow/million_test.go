package escrow

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// TestAChangeWaitsForNoKeys: however many keys a limit has, a change of it ends all of
// them in no time, and what they hold goes back afterwards, all of it.
func TestAChangeWaitsForNoKeys(t *testing.T) {
	t.Parallel()
	t.Run("T9_G10", func(t *testing.T) {
		t.Parallel()
		const keys = 20_000
		s := newTable(t)
		s.settle()
		for i := range keys {
			s.Note(keyed(fmt.Sprint(i), 1))
			s.Note(keyed(fmt.Sprint(i), 1))
		}
		asked := 0
		for more := true; more; more = len(s.asks) > 0 {
			s.step(0)
			for _, op := range s.asks {
				asked++
				s.applied(op, given(op.GetAmount()))
			}
		}
		if asked != keys || s.Held()["k"] == 0 {
			t.Fatalf("%d keys were asked for, %d tokens are held", asked, s.Held()["k"])
		}
		held := s.Held()["k"]
		s.Configure(2, testTerms(2))
		if s.Take(keyed("7", 1)) != nil || s.Held()["k"] != 0 {
			t.Error("granted from what is void")
		}
		back, largest := int64(0), 0
		for range 100 {
			s.step(time.Millisecond)
			for _, r := range s.back {
				list := r.Operation.GetReturnEscrow().GetReturns()
				largest = max(largest, len(list))
				for _, one := range list {
					back += one.GetUnspent()
				}
			}
			for _, op := range s.asks {
				s.applied(op, &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_NONE})
			}
		}
		if back != held || largest > returnsMax {
			t.Errorf("%d of %d tokens went back, at most %d returns at once", back, held, largest)
		}
	})
}
