package failopen

import (
	"fmt"
	"testing"
	"time"
)

func TestDecideAllocatesNothing(t *testing.T) {
	m := mustMachine(t, Config{Static: []Fallback{quarter()}})
	awayAt(t, m, start)
	open := Request{Client: "a", Class: "live", Charges: []Charge{
		{Limit: "open", Key: "k", Dimension: "requests", Amount: 1},
		{Limit: "open", Key: "k", Dimension: "tokens", Amount: 4000},
	}}
	retry := Request{Client: "a", Attempt: 1, Charges: open.Charges}
	for name, r := range map[string]Request{"open": open, "share": ask(1), "a retry": retry} {
		m.Decide(start.Add(time.Second), r)
		if n := testing.AllocsPerRun(1000, func() { m.Decide(start.Add(time.Second), r) }); n != 0 {
			t.Errorf("%s: %v allocations a decision", name, n)
		}
	}
	if n := testing.AllocsPerRun(1000, func() { m.Observe(start, Slow) }); n != 0 {
		t.Errorf("%v allocations an observation", n)
	}
	if n := testing.AllocsPerRun(1000, func() { m.Known("a", open.Charges) }); n != 0 {
		t.Errorf("%v allocations to say what is known", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, keys := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("open_of_%d_keys", keys), func(b *testing.B) {
			m := mustMachine(b, Config{})
			awayAt(b, m, start)
			requests := make([]Request, keys)
			for i := range requests {
				requests[i] = Request{Client: "a", Charges: []Charge{
					{Limit: "open", Key: fmt.Sprint("tenant-", i), Dimension: "requests", Amount: 1},
				}}
				m.Decide(start, requests[i])
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				m.Decide(start.Add(time.Duration(i)*time.Microsecond), requests[i%keys])
				i++
			}
		})
	}
	b.Run("share", func(b *testing.B) {
		m := mustMachine(b, Config{Static: []Fallback{quarter()}})
		awayAt(b, m, start)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			m.Decide(start.Add(time.Duration(i)*time.Microsecond), ask(1))
			i++
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	m := mustMachine(b, Config{})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Observe(start, Answered)
		}
	})
}
