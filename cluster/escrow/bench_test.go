package escrow

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// stocked is a wallet with plenty of one limit and of many keys of another.
func stocked(b testing.TB, keys int) *Wallet {
	b.Helper()
	w := New(Config{Node: "a", Boot: 1, Failover: time.Second, Elapsed: func() time.Duration { return time.Second }})
	terms := testTerms(1)
	for _, one := range terms {
		one.Life = 24 * time.Hour
	}
	w.Configure(1, terms)
	for i := range keys {
		for range 2 {
			w.Note(keyed(fmt.Sprint(i), 1))
		}
	}
	for _, limit := range w.books.Load().byLimit {
		for i := range limit.shards {
			for _, h := range limit.shards[i].keys {
				for p := range h.pots {
					h.pots[p].portions = []*portion{{unspent: 1 << 52, until: 20 * time.Hour, at: h, pot: p}}
				}
			}
		}
	}
	return w
}

func requests(n int) []*logv1.Acquire {
	list := make([]*logv1.Acquire, n)
	for i := range list {
		list[i] = &logv1.Acquire{Client: "c", Charges: []*logv1.Charge{
			{Limit: "k", Key: fmt.Sprint(i), Dimension: "requests", Amount: 1},
		}}
	}
	return list
}

// The first touch of a key is noted in passing.
func BenchmarkFirstTouch(b *testing.B) {
	w := stocked(b, 0)
	const keys = 1 << 17
	ops := requests(keys)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		op := ops[i%keys]
		if i%keys == 0 {
			w = stocked(b, 0)
		}
		if w.Take(op) == nil && w.Vacate(op) == nil {
			w.Note(op)
		}
		if i%1024 == 0 {
			w.Step()
		}
	}
}

func BenchmarkTakeOne(b *testing.B) {
	w, ops := stocked(b, 1), requests(1)
	b.ReportAllocs()
	for b.Loop() {
		if w.Take(ops[0]) == nil {
			b.Fatal("not granted")
		}
	}
}

func BenchmarkTakeOfManyKeys(b *testing.B) {
	const keys = 1 << 14
	w, ops := stocked(b, keys), requests(keys)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if w.Take(ops[i%keys]) == nil {
				b.Error("not granted")
			}
		}
	})
}

func BenchmarkTakeThreeCharges(b *testing.B) {
	w := stocked(b, 1)
	op := &logv1.Acquire{Charges: []*logv1.Charge{
		{Limit: "g", Dimension: "requests", Amount: 1},
		{Limit: "g", Dimension: "tokens", Amount: 100},
		{Limit: "k", Key: "0", Dimension: "requests", Amount: 1},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if w.Take(op) == nil {
			b.Fatal("not granted")
		}
	}
}

// A key that nothing is held of costs little: the acquire goes on to the log.
func BenchmarkTakeNothing(b *testing.B) {
	w := stocked(b, 1)
	op := &logv1.Acquire{Charges: []*logv1.Charge{{Limit: "k", Key: "none", Dimension: "requests", Amount: 1}}}
	b.ReportAllocs()
	for b.Loop() {
		if w.Take(op) != nil {
			b.Fatal("granted")
		}
	}
}

// TestTakeAllocatesTheAnswerOnly: a grant of one charge is one piece of memory.
func TestTakeAllocatesTheAnswerOnly(t *testing.T) {
	w, ops := stocked(t, 1), requests(1)
	if n := testing.AllocsPerRun(1000, func() { w.Take(ops[0]) }); n != 1 {
		t.Errorf("%v allocations for a grant", n)
	}
}
