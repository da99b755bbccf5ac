package tally

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/check"
)

const (
	// finest is how exact grants are noted, where memory allows it.
	finest = 10 * time.Millisecond
	// cellsMost bounds the memory: four bytes each.
	cellsMost = 8 << 20
)

// Bucket is what every key of a limit has: Rate tokens an Interval, and Burst.
type Bucket struct {
	Limit, Dimension string
	Rate             int64
	Interval         time.Duration
	Burst            int64
	// Escrow: nodes may hold its tokens, debited as long as EscrowLife before they grant them.
	Escrow bool
}

// EscrowLife is that of limits that say nothing of it, as those of every bench.
const EscrowLife = 3 * time.Second

// Tally holds every grant that a client saw, by key and slot, over all rounds.
// Callers use it at the same time.
type Tally struct {
	bucket Bucket
	keys   []string
	start  time.Time
	slot   time.Duration
	cells  [][]atomic.Uint32
	// longest is the longest time from sending to a grant, nanoseconds.
	longest atomic.Int64
	tokens  atomic.Int64
	// lost counts grants after the end of the tally.
	lost atomic.Int64
}

// New has room for as many keys, of these names, and as long a run from now on.
func New(b Bucket, keys []string, length time.Duration) *Tally {
	t := &Tally{bucket: b, keys: keys, start: time.Now(), cells: make([][]atomic.Uint32, len(keys))}
	t.slot = max(finest, length/time.Duration(max(1, cellsMost/len(keys)))+1)
	for i := range t.cells {
		t.cells[i] = make([]atomic.Uint32, length/t.slot+1)
	}
	return t
}

// Grant notes one token of a key, by its place.
func (t *Tally) Grant(key int, sent, ended time.Time) {
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

// Touched is how many keys were granted of.
func (t *Tally) Touched() (keys int64) {
	for i := range t.cells {
		for at := range t.cells[i] {
			if t.cells[i][at].Load() > 0 {
				keys++
				break
			}
		}
	}
	return keys
}

// spending is what was noted, for the checks.
func (t *Tally) spending() (*check.Spending, error) {
	if lost := t.lost.Load(); lost > 0 {
		return nil, fmt.Errorf("%d grants came after the run should have ended", lost)
	}
	b := &t.bucket
	s := &check.Spending{
		Limit: b.Limit, Dimension: b.Dimension, Amount: b.Rate, Interval: b.Interval, Burst: b.Burst, Slot: t.slot,
		Keys: make([]check.Row, 0, len(t.cells)),
	}
	for i := range t.cells {
		row := check.Row{Key: t.keys[i], Tokens: make([]uint32, len(t.cells[i]))}
		for at := range t.cells[i] {
			row.Tokens[at] = t.cells[i][at].Load()
		}
		s.Keys = append(s.Keys, row)
	}
	return s, nil
}
