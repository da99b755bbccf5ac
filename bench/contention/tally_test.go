package contention

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

func TestTally(t *testing.T) {
	t.Parallel()
	config := Default()
	config.Keys = 2
	tally := newTally(2, time.Second)
	at := func(ms int) time.Time { return tally.start.Add(time.Duration(ms) * time.Millisecond) }
	tally.grant(0, at(1), at(5))
	tally.grant(0, at(1), at(9))
	tally.grant(1, at(0), at(25))
	got, err := tally.spending(&config)
	if err != nil {
		t.Fatal(err)
	}
	if got.Keys[0].Tokens[0] != 2 || got.Keys[1].Tokens[2] != 1 || got.Slot != tallySlot {
		t.Errorf("%+v; want two tokens of key 0 in slot 0 and one of key 1 in slot 2", got)
	}
	if tally.longest.Load() != int64(25*time.Millisecond) || tally.tokens.Load() != 3 {
		t.Errorf("longest %d, tokens %d; want 25 ms, 3", tally.longest.Load(), tally.tokens.Load())
	}
	tally.grant(0, at(0), at(5000))
	if _, err := tally.spending(&config); err == nil {
		t.Error("a grant after the end: no error")
	}
	many := newTally(keysMost, 200*time.Hour)
	if cells := keysMost * len(many.cells[0]); cells > tallyCells+keysMost || many.slot <= 0 {
		t.Errorf("%d keys and 200 hours: %d cells of %v, at most about %d", keysMost, cells, many.slot, tallyCells)
	}
}
