package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/record"
)

// TestG10ProcessesAreBounded: four of a node and 256 in all are remembered, and those that
// were given something last.
func TestG10ProcessesAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10_T7", func(t *testing.T) {
		t.Parallel()
		l := ledger.New()
		for boot := range uint64(9) {
			l.Given(record.EscrowID{Node: "n", Boot: boot, Sequence: boot + 1}, bucket.Instant(boot))
		}
		for boot := range uint64(9) {
			want := uint64(0)
			if boot >= 5 {
				want = boot + 1
			}
			if got := l.Highest("n", boot); got != want {
				t.Errorf("boot %d: %d, want %d", boot, got, want)
			}
		}
		for i := range 300 {
			l.Given(record.EscrowID{Node: fmt.Sprint(i), Boot: 1, Sequence: 1}, bucket.Instant(100+i))
		}
		known := 0
		for i := range 300 {
			known += int(l.Highest(fmt.Sprint(i), 1))
		}
		if known != 256 || l.Highest("n", 8) != 0 || l.Highest("299", 1) != 1 {
			t.Errorf("%d are known", known)
		}
		if l.Hash() != l.Recount() {
			t.Errorf("hash %016x, recount %016x", l.Hash(), l.Recount())
		}
	})
}

// TestRecordsAndTheirIndexes: what is added, changed behind a snapshot and removed is
// found by id, key, limit, node and end.
func TestRecordsAndTheirIndexes(t *testing.T) {
	t.Parallel()
	l := ledger.New()
	for i := range 10 {
		l.Add(record.Escrow{
			ID: record.EscrowID{Node: fmt.Sprint("n", i%2), Sequence: uint64(i + 1)}, LimitID: uint32(i % 3),
			KeyName: "k", Amount: 10, Until: bucket.Instant(100 - i),
		})
	}
	l.Freeze()
	e, at := l.First()
	one := e.Escrow
	one.Paid = 5
	l.Set(e, one)
	e = l.Find(one.ID)
	if again, _ := l.First(); again != e || e.Paid != 5 || at != 91 {
		t.Errorf("first is %+v at %d, want %+v", again, at, e)
	}
	if n, m := len(l.OfKey(0, "k")), l.OfLimit(0); n != 4 || m != 4 {
		t.Errorf("%d of the key, %d of the limit, want 4", n, m)
	}
	if list := l.OfNode("n1"); len(list) != 5 || list[4].ID.Sequence != 10 || list[4].Paid != 5 {
		t.Errorf("of the node: %v", list)
	}
	for e, _ := l.First(); e != nil; e, _ = l.First() {
		if l.Hash() != l.Recount() {
			t.Fatalf("hash %016x, recount %016x", l.Hash(), l.Recount())
		}
		l.Remove(e)
	}
	if l.Hash() != 0 || l.Len() != 0 || len(l.OfKey(0, "k")) != 0 || l.OfLimit(0) != 0 {
		t.Errorf("%d records, hash %x: want none", l.Len(), l.Hash())
	}
}
