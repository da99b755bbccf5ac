package escrow

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster/outcome"
)

// TestNothingLeaks: whatever becomes of limits, asks and returns, what the wallet keeps of
// them goes, and tokens that are nobody's go back.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	used := func(t *testing.T, keys int) *table {
		t.Helper()
		s := newTable(t)
		s.settle()
		for i := range keys {
			s.Note(keyed(fmt.Sprint(i), 1))
			s.Note(keyed(fmt.Sprint(i), 1))
		}
		return s
	}
	t.Run("G10_keys_of_a_changed_limit_are_counted_once", func(t *testing.T) {
		t.Parallel()
		s := used(t, 2*looksMax)
		s.Configure(2, testTerms(2))
		// What is due is looked at while most keys of before are still to be drained.
		s.now += 2 * testLife
		for range 20 {
			s.step(time.Millisecond)
		}
		kept := int64(0)
		for _, b := range s.books.Load().byLimit {
			for i := range b.shards {
				kept += int64(len(b.shards[i].keys))
			}
		}
		if known := s.known.Load(); known != kept {
			t.Errorf("%d keys are counted, and there are %d", known, kept)
		}
	})
	t.Run("G10_asks_of_unknown_fate_end_with_their_limit", func(t *testing.T) {
		t.Parallel()
		s := used(t, 1)
		s.step(0)
		asked := s.asks
		s.Configure(2, nil)
		s.step(0)
		for _, op := range asked {
			s.Answered(op, nil, outcome.ErrUnknown)
		}
		for range 20 {
			s.step(time.Second)
		}
		if len(asked) == 0 || len(s.Wallet.asks) != 0 || len(s.ledger) != 0 {
			t.Errorf("of %d asks %d are kept, with %d portions", len(asked), len(s.Wallet.asks), len(s.ledger))
		}
	})
	t.Run("T9_what_is_void_and_could_not_go_back_goes_later", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.stock(10)
		s.Void("g", "")
		s.step(0)
		if len(s.back) == 0 {
			t.Fatal("nothing goes back")
		}
		before := s.back
		for _, r := range before {
			s.Returned(r, outcome.ErrNoLeader)
		}
		if s.step(0); len(s.back) != 0 {
			t.Error("sent again at once, while nobody leads")
		}
		if s.step(pauseMin); tokensOf(s.back) != tokensOf(before) {
			t.Errorf("%d tokens go back, of %d", tokensOf(s.back), tokensOf(before))
		}
	})
	t.Run("T9_what_is_on_its_way_back_is_void_too", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.stock(10)
		back := s.Vacate(s.asksFor(20))
		// It is among nobody's portions when what is held becomes void.
		s.Void("g", "")
		s.Returned(back, outcome.ErrNoLeader)
		if s.grants(1) {
			t.Error("granted from what is void")
		}
		if s.step(pauseMin); tokensOf(s.back) != 10 {
			t.Errorf("%d tokens go back later, want 10", tokensOf(s.back))
		}
	})
	t.Run("a_step_is_short_however_many_keys_are_low", func(t *testing.T) {
		t.Parallel()
		s := used(t, 3*looksMax)
		total := 0
		for range 5 {
			if s.step(0); len(s.asks) > looksMax {
				t.Fatalf("%d keys in one step", len(s.asks))
			}
			total += len(s.asks)
		}
		if total != 3*looksMax {
			t.Errorf("asked for %d keys of %d", total, 3*looksMax)
		}
	})
}

func tokensOf(list []*Return) (sum int64) {
	for _, r := range list {
		for _, one := range r.Operation.GetReturnEscrow().GetReturns() {
			sum += one.GetUnspent()
		}
	}
	return sum
}

// TestLeaving: a process that ends gives back what it holds, once, but for what is to pay
// for leases, and asks for nothing more.
func TestLeaving(t *testing.T) {
	trace(t, map[string]func(*table){
		"T11_T42": func(s *table) {
			s.stock(10)
			back := s.Leave()
			if s.grants(1) || tokensOf(back) != 10 || len(s.Leave()) != 0 {
				s.t.Errorf("%d tokens of 10 go back", tokensOf(back))
			}
			s.Note(s.asksFor(1))
			if s.step(testLife); len(s.asks) != 0 || tokensOf(s.back) != 0 {
				s.t.Errorf("asks for %v, returns %v", s.asks, s.back)
			}
		},
		"T41": func(s *table) {
			s.stock(10)
			s.Reserve(s.tracked(4))
			if back := s.Leave(); tokensOf(back) != 0 {
				s.t.Errorf("%d tokens go back from under a lease", tokensOf(back))
			}
		},
		"what_comes_late_goes_back": func(s *table) {
			s.step(0)
			s.Leave()
			s.applied(s.asks[0], given(10))
			if s.step(0); tokensOf(s.back) != 10 || s.grants(1) {
				s.t.Errorf("%d tokens go back", tokensOf(s.back))
			}
		},
	})
}
