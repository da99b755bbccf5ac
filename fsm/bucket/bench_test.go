package bucket

import (
	"testing"
	"time"
)

// subjects are the buckets that are measured: without classes, and with four.
func subjects(tb testing.TB) map[string]*Shape {
	tb.Helper()
	plain, err := NewShape(rate(1000, time.Minute, 1000))
	if err != nil {
		tb.Fatal(err)
	}
	classes, err := NewShape(Spec{
		Amount: 1000, Interval: time.Minute, Target: 7500, Burst: 1000, MaxDebt: 1000,
		Classes: []ClassSpec{{5000, 500}, {2500, 200}, {1000, 100}, {}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]*Shape{"plain": plain, "classes": classes}
}

func TestNothingIsAllocated(t *testing.T) {
	for name, s := range subjects(t) {
		b := s.Full(0)
		last := s.Classes() - 1
		sink := int64(0)
		visit := func(n int64) { sink += n }
		for what, do := range map[string]func(){
			"Advance":    func() { b.Advance(s, b.last+Instant(time.Second)) },
			"Take":       func() { b.Take(s, last, 7) },
			"Refund":     func() { b.Refund(s, last, 1, 0) },
			"RetryAfter": func() { b.RetryAfter(s, last, s.EffectiveBurst(last)) },
			"FullAt":     func() { b.FullAt(s) },
			"Walk":       func() { b.Walk(visit) },
			"Remaining":  func() { b.Remaining(s) },
		} {
			if got := testing.AllocsPerRun(100, do); got != 0 {
				t.Errorf("%s, %s: %v allocations, want none", name, what, got)
			}
		}
	}
}

// A denial to a class in debt must walk over the debt, also on the stack.
func TestDenialInDebtAllocatesNothing(t *testing.T) {
	for name, s := range subjects(t) {
		b := s.Full(0)
		b.Excess(s, 0, 1500)
		got := testing.AllocsPerRun(100, func() {
			if _, ok := b.Take(s, 0, 1); ok {
				t.Fatal("granted to a class in debt")
			}
			b.RetryAfter(s, 0, 1)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations, want none", name, got)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	for name, s := range subjects(b) {
		b.Run(name, func(b *testing.B) {
			bucket := s.Full(0)
			for b.Loop() {
				if took, ok := bucket.Take(s, 0, 1); ok {
					bucket.Refund(s, 0, 1, took)
				}
			}
		})
	}
}

func BenchmarkAdvance(b *testing.B) {
	for name, s := range subjects(b) {
		b.Run(name, func(b *testing.B) {
			bucket := s.Full(0)
			for b.Loop() {
				bucket.Take(s, 0, 1)
				bucket.Advance(s, bucket.last+Instant(time.Millisecond))
			}
		})
	}
}

func BenchmarkAdvanceYears(b *testing.B) {
	for name, s := range subjects(b) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				bucket := Bucket{}
				bucket.Advance(s, Instant(10*365*24*time.Hour))
			}
		})
	}
}

func BenchmarkDenial(b *testing.B) {
	for name, s := range subjects(b) {
		b.Run(name, func(b *testing.B) {
			bucket := s.Empty(0)
			bucket.Excess(s, 0, 100)
			bucket.Advance(s, 1)
			for b.Loop() {
				if _, ok := bucket.Take(s, 0, 7); !ok {
					bucket.RetryAfter(s, 0, 7)
				}
			}
		})
	}
}
