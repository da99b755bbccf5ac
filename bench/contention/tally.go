package contention

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/check"
)

const (
	// tallySlot is how exact grants are noted, where memory allows it.
	tallySlot = 10 * time.Millisecond
	// tallyCells bounds the memory: four bytes each.
	tallyCells = 8 << 20
)

// tally notes every grant that a client saw, by key and slot, over all rounds, for
// the checks from outside. Callers use it at the same time.
type tally struct {
	start time.Time
	slot  time.Duration
	cells [][]atomic.Uint32
	// longest is the longest time from sending to a grant, nanoseconds.
	longest atomic.Int64
	tokens  atomic.Int64
	// lost counts grants after the end of the tally.
	lost atomic.Int64
}

// newTally has room for as many keys and as long a run.
func newTally(keys int, length time.Duration) *tally {
	t := &tally{start: time.Now(), cells: make([][]atomic.Uint32, keys)}
	t.slot = max(tallySlot, length/time.Duration(tallyCells/keys)+1)
	for i := range t.cells {
		t.cells[i] = make([]atomic.Uint32, length/t.slot+1)
	}
	return t
}

// grant notes one token.
func (t *tally) grant(key int, sent, ended time.Time) {
	t.tokens.Add(1)
	for took := int64(ended.Sub(sent)); ; {
		longest := t.longest.Load()
		if took <= longest || t.longest.CompareAndSwap(longest, took) {
			break
		}
	}
	at := ended.Sub(t.start) / t.slot
	if at >= time.Duration(len(t.cells[key])) {
		t.lost.Add(1)
		return
	}
	t.cells[key][at].Add(1)
}

// spending is what was noted, for the checks.
func (t *tally) spending(c *Config) (*check.Spending, error) {
	if lost := t.lost.Load(); lost > 0 {
		return nil, fmt.Errorf("%d grants came after the run should have ended", lost)
	}
	s := &check.Spending{
		Limit: limitName, Dimension: dimension,
		Amount: c.LimitRate, Interval: time.Second, Burst: c.LimitBurst, Slot: t.slot,
	}
	for i := range t.cells {
		row := check.Row{Key: keyName(i), Tokens: make([]uint32, len(t.cells[i]))}
		for at := range t.cells[i] {
			row.Tokens[at] = t.cells[i][at].Load()
		}
		s.Keys = append(s.Keys, row)
	}
	return s, nil
}
