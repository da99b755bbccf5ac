package patience

import "testing"

// A tenth of what is answered may be asked twice, and a burst when that was saved up.
func TestHedges(t *testing.T) {
	t.Parallel()
	h := NewHedges()
	spend := func() (n int) {
		for ; h.Left(); n++ {
			h.Pay()
		}
		return n
	}
	if n := spend(); n != 100 {
		t.Errorf("%d at first, want 100", n)
	}
	answer := func(n int) {
		for range n {
			h.Answered()
		}
	}
	if answer(9); h.Left() {
		t.Error("nine answers pay for a hedge")
	}
	if answer(1); spend() != 1 {
		t.Error("ten answers do not pay for one hedge")
	}
	if answer(1_000_000); spend() != hedgesMost {
		t.Errorf("want %d at most", hedgesMost)
	}
	// Several who looked at once may overdraw it; that is paid back.
	h.Pay()
	if answer(19); h.Left() {
		t.Error("a debt is forgotten")
	}
	if answer(1); !h.Left() {
		t.Error("a debt is never paid")
	}
}
