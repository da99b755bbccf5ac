package bucket

import (
	"testing"
	"time"
)

// shared is a spec with two classes, live first.
func shared(amount, burst int64, live, batch ClassSpec) Spec {
	return Spec{
		Amount: amount, Interval: time.Second, Target: Whole, Burst: burst, MaxDebt: 1000,
		Classes: []ClassSpec{live, batch},
	}
}

const (
	live  = 0
	batch = 1
)

// mustTake takes or fails the test.
func mustTake(t *testing.T, s *Shape, b *Bucket, class int, n int64) (took int64) {
	t.Helper()
	took, ok := b.Take(s, class, n)
	if !ok {
		t.Fatalf("class %d is refused %d of %+v", class, n, *b)
	}
	return took
}

// mustRefuse checks that it is refused and returns when to come back.
func mustRefuse(t *testing.T, s *Shape, b *Bucket, class int, n int64) time.Duration {
	t.Helper()
	if _, ok := b.Take(s, class, n); ok {
		t.Fatalf("class %d is granted %d, now %+v", class, n, *b)
	}
	wait, isNever := b.RetryAfter(s, class, n)
	if isNever {
		return never
	}
	return wait
}

func TestTrapsOfDebt(t *testing.T) {
	t.Run("T17_debt_is_not_taken_from_another_class", func(t *testing.T) {
		s := mustShape(t, shared(10, 10, ClassSpec{6000, 6}, ClassSpec{}))
		b := s.Full(0)
		b.Excess(s, batch, 11)
		if got, debt := b.ClassLevel(s, live), b.Debt(s, batch); got != 6 || debt != 7 {
			t.Fatalf("live has %d, batch owes %d, want 6, 7", got, debt)
		}
		mustTake(t, s, &b, live, 6)
		// Its guarantee goes on while batch pays.
		for second := range 5 {
			b.Advance(s, Instant(second+1)*Instant(time.Second))
			mustTake(t, s, &b, live, 6)
		}
		if debt := b.Debt(s, batch); debt != 0 {
			t.Fatalf("batch owes %d after five seconds, want 0", debt)
		}
	})
	t.Run("T18_debt_is_paid_from_what_an_idle_class_cannot_hold", func(t *testing.T) {
		s := mustShape(t, shared(10, 10, ClassSpec{Whole, 5}, ClassSpec{}))
		b := s.Full(0)
		b.Excess(s, batch, 25)
		if debt := b.Debt(s, batch); debt != 20 {
			t.Fatalf("batch owes %d, want 20", debt)
		}
		if wait := mustRefuse(t, s, &b, batch, 1); wait != 2100*ms {
			t.Fatalf("retry after %v, want 2.1s", wait)
		}
		b.Advance(s, Instant(2100*ms))
		mustTake(t, s, &b, batch, 1)
	})
	t.Run("T47_however_time_is_cut", func(t *testing.T) {
		spec := Spec{Amount: 1, Interval: 1, Target: Whole, Burst: 4, MaxDebt: 9, Classes: []ClassSpec{{5000, 2}}}
		s := mustShape(t, spec)
		b := s.Full(0)
		b.Excess(s, 0, 5)
		once, twice := b.Clone(), b.Clone()
		once.Advance(s, 2)
		twice.Advance(s, 1)
		twice.Advance(s, 2)
		if !once.Equal(&twice) || once.Debt(s, 0) != 0 || once.Level(s) != 1 {
			t.Fatalf("advanced once %+v, twice %+v, want the same with a level of 1", once, twice)
		}
	})
}

func TestTrapsOfClasses(t *testing.T) {
	t.Run("T19_effective_burst", func(t *testing.T) {
		s := mustShape(t, shared(10, 125, ClassSpec{5000, 62}, ClassSpec{}))
		if got := s.EffectiveBurst(batch); got != 63 {
			t.Fatalf("effective burst of batch %d, want 63", got)
		}
		b := s.Full(0)
		if wait := mustRefuse(t, s, &b, batch, 100); wait != never {
			t.Fatalf("100 for batch: retry after %v, want never", wait)
		}
		// Also where they happen to be there: live has taken its own, and all is
		// full again but for that.
		mustTake(t, s, &b, live, 62)
		b.Raise(s, 62)
		if wait := mustRefuse(t, s, &b, batch, 64); wait != never {
			t.Fatalf("64 for batch: retry after %v, want never", wait)
		}
		mustTake(t, s, &b, batch, 63)
		_, err := NewShape(shared(10, 125, ClassSpec{5000, 125}, ClassSpec{}))
		if err == nil {
			t.Fatal("a spec that leaves batch nothing is accepted")
		}
	})
	t.Run("T20_a_refund_goes_back_where_it_came_from", func(t *testing.T) {
		s := mustShape(t, shared(10, 10, ClassSpec{5000, 5}, ClassSpec{}))
		b := s.Full(0)
		took := mustTake(t, s, &b, live, 5)
		if took != 5*s.Unit() {
			t.Fatalf("live took %d units of its own, want %d", took, 5*s.Unit())
		}
		mustTake(t, s, &b, batch, 5)
		b.Refund(s, live, 4, took)
		mustRefuse(t, s, &b, batch, 1)
		mustTake(t, s, &b, live, 4)
	})
	t.Run("T20_what_was_borrowed_goes_back_to_all", func(t *testing.T) {
		s := mustShape(t, shared(10, 10, ClassSpec{5000, 5}, ClassSpec{}))
		b := s.Full(0)
		took := mustTake(t, s, &b, live, 8)
		b.Refund(s, live, 7, took)
		if own, all := b.ClassLevel(s, live), b.Level(s); own != 5 || all != 9 {
			t.Fatalf("live has %d of %d, want 5 of 9", own, all)
		}
		mustTake(t, s, &b, batch, 4)
	})
	t.Run("T21_whole_token_sub_bursts", func(t *testing.T) {
		// Half of a burst of 1 is no whole token: both classes borrow all there is.
		s := mustShape(t, shared(1, 1, ClassSpec{5000, 0}, ClassSpec{5000, 0}))
		b := s.Full(0)
		for second := range 10 {
			b.Advance(s, Instant(second)*Instant(time.Second))
			mustTake(t, s, &b, second%2, 1)
		}
	})
	t.Run("T36_other_sub_buckets_fill_first", func(t *testing.T) {
		s := mustShape(t, shared(10, 10, ClassSpec{6000, 6}, ClassSpec{}))
		b := s.Empty(0)
		// One tenth of a second would do if batch got all refill. It gets four
		// tenths of it until live's sub-bucket is full.
		if wait := mustRefuse(t, s, &b, batch, 1); wait != 250*ms {
			t.Fatalf("retry after %v, want 250ms", wait)
		}
		b.Advance(s, Instant(time.Second))
		mustTake(t, s, &b, batch, 4)
		if wait := mustRefuse(t, s, &b, batch, 1); wait != 100*ms {
			t.Fatalf("retry after %v once live is full, want 100ms", wait)
		}
	})
}

func TestTrapsOfChanges(t *testing.T) {
	ten := mustShape(t, rate(1, time.Second, 10))
	five := mustShape(t, rate(1, time.Second, 5))
	t.Run("T13_a_burst_lowered_and_raised_again_gives_nothing", func(t *testing.T) {
		b := ten.Full(0)
		b.Convert(ten, five, []int{0})
		b.Convert(five, ten, []int{0})
		if got := b.Level(ten); got != 5 {
			t.Fatalf("level %d after 10, 5, 10, want 5", got)
		}
		if wait := mustRefuse(t, ten, &b, 0, 10); wait != 5*time.Second {
			t.Fatalf("retry after %v, want 5s", wait)
		}
	})
	t.Run("T14_a_raise_gives_nothing", func(t *testing.T) {
		hundred := mustShape(t, rate(1, time.Second, 100))
		b := ten.Full(0)
		b.Convert(ten, hundred, []int{0})
		if got := b.Level(hundred); got != 10 {
			t.Fatalf("level %d after raising 10 to 100, want 10", got)
		}
	})
}
