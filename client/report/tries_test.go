package report

import (
	"testing"

	"github.com/quorlease/quorlease/client/failopen"
)

// TestWhatNobodyTookIsToldAgain: what was tried is told once where it was taken, and with
// what came meanwhile where it was not, or where nobody knows: never less.
func TestWhatNobodyTookIsToldAgain(t *testing.T) {
	t.Parallel()
	machine, err := failopen.New(failopen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &Book{machine: machine, client: "a", owe: func() {}}
	b.Permit(0)
	b.Permit(1)
	b.Done(Outcome{Throttled: true, Error: "429"})
	first := b.take()
	b.Permit(0)
	b.Done(Outcome{Error: "429"})
	b.putBack(first)
	a := b.take()
	if a.GetTotal() != 3 || a.GetRetries() != 1 || a.GetThrottled() != 1 || a.GetError() != "429" || a.GetErrors() != 2 {
		t.Errorf("told %v, want 3 with one retry, throttled once, and two errors", a)
	}
	if a := b.take(); a != nil || b.owes() {
		t.Errorf("told %v once more", a)
	}
}
