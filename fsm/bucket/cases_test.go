package bucket

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// never is the wait of a request that no waiting helps.
const never = time.Duration(-1)

// step is one acquire of a script: when, how much, and the wait that a denial
// has to answer; a wait of 0 is a grant.
type step struct {
	at   time.Duration
	n    int64
	wait time.Duration
}

// rate is the spec of so many tokens an interval without classes.
func rate(amount int64, interval time.Duration, burst int64) Spec {
	return Spec{Amount: amount, Interval: interval, Target: Whole, Burst: burst, MaxDebt: max(0, burst)}
}

// play runs the steps on the bucket and checks that a denial changes nothing.
func play(t *testing.T, s *Shape, b *Bucket, steps ...step) {
	t.Helper()
	for i, one := range steps {
		b.Advance(s, Instant(one.at))
		before := b.Clone()
		_, ok := b.Take(s, 0, one.n)
		if ok != (one.wait == 0) {
			t.Fatalf("step %d: at %v acquire %d: granted %v, want wait %v", i, one.at, one.n, ok, one.wait)
		}
		if ok {
			continue
		}
		wait, isNever := b.RetryAfter(s, 0, one.n)
		if isNever {
			wait = never
		}
		if wait != one.wait || !b.Equal(&before) {
			t.Fatalf("step %d: at %v acquire %d: retry after %v, want %v; bucket %+v, want %+v",
				i, one.at, one.n, wait, one.wait, *b, before)
		}
	}
}

// playFull is play on a bucket that is full at 0.
func playFull(t *testing.T, spec Spec, steps ...step) {
	t.Helper()
	s := mustShape(t, spec)
	b := s.Full(0)
	play(t, s, &b, steps...)
}

const ms = time.Millisecond

func TestRegressionTime(t *testing.T) {
	t.Run("A01_time_going_backwards_mints_nothing", func(t *testing.T) {
		playFull(t, rate(100, time.Second, 100),
			step{10 * time.Second, 100, 0},
			step{9 * time.Second, 1, 10 * ms},
			step{10 * time.Second, 1, 10 * ms},
			step{10010 * ms, 1, 0},
			step{9500 * ms, 1, 10 * ms},
			step{10020 * ms, 1, 0})
	})
	t.Run("A02_refill_accrues_while_being_polled", func(t *testing.T) {
		s := mustShape(t, rate(10, 30*time.Second, 10))
		b := s.Full(0)
		total := 0
		for at := range 61 {
			b.Advance(s, Instant(at)*Instant(time.Second))
			_, ok := b.Take(s, 0, 1)
			if want := at <= 13 || at%3 == 0; ok != want {
				t.Fatalf("at %d s: granted %v, want %v", at, ok, want)
			}
			if ok {
				total++
			}
		}
		if total != 30 {
			t.Fatalf("granted %d in a minute, want 30", total)
		}
	})
	t.Run("A03_never_above_capacity", func(t *testing.T) {
		s := mustShape(t, rate(3, time.Second, 3))
		b := s.Full(0)
		answers, total := "", 0
		for i := range 100 {
			b.Advance(s, Instant(i)*Instant(100*ms))
			if b.Level(s) > 3 {
				t.Fatalf("step %d: level %d, want at most 3", i, b.Level(s))
			}
			_, ok := b.Take(s, 0, 1)
			answers += map[bool]string{true: "G", false: "D"}[ok]
			if ok {
				total++
			}
		}
		if got := answers[:11]; got != "GGGDGDDGDDG" || total != 32 {
			t.Fatalf("answers %s, %d grants, want GGGDGDDGDDG, 32", got, total)
		}
	})
	t.Run("A04_a_window_boundary_does_not_double_the_limit", func(t *testing.T) {
		playFull(t, rate(10, time.Second, 10),
			step{999 * ms, 10, 0},
			step{1001 * ms, 1, 98 * ms},
			step{1001 * ms, 10, 998 * ms},
			step{1099 * ms, 1, 0},
			step{1999 * ms, 10, 100 * ms})
	})
}

func TestRegressionAmounts(t *testing.T) {
	t.Run("A05_a_request_above_the_burst_is_refused_at_once", func(t *testing.T) {
		playFull(t, rate(3, 2*time.Second, 3), step{0, 4, never}, step{0, 3, 0})
		if _, err := NewShape(rate(3, time.Second, 0)); err == nil {
			t.Fatal("a burst of 0 with a rate is accepted")
		}
	})
	t.Run("A06_zero_means_none", func(t *testing.T) {
		playFull(t, rate(0, time.Second, 0), step{0, 1, never}, step{time.Hour, 1, never})
		playFull(t, rate(0, time.Second, 5),
			step{0, 1, 0}, step{0, 1, 0}, step{0, 1, 0}, step{0, 1, 0}, step{0, 1, 0},
			step{0, 1, never}, step{time.Hour, 1, never})
		for _, spec := range []Spec{rate(-1, time.Second, 1), rate(1, time.Second, -1), rate(1, -1, 1), rate(1, 0, 1)} {
			if _, err := NewShape(spec); err == nil {
				t.Errorf("%+v is accepted", spec)
			}
		}
	})
	t.Run("A10_very_large_numbers", func(t *testing.T) {
		playFull(t, rate(1e9, time.Second, 1e12),
			step{0, 1e12, 0}, step{0, 1, ms}, step{time.Second, 1e9, 0})
		// A token a nanosecond: the largest bucket still counts single tokens.
		playFull(t, rate(MaxTokens, MaxTokens, MaxTokens), step{0, MaxTokens, 0}, step{0, 1, ms}, step{ms, 1, 0})
		for _, spec := range []Spec{
			rate(MaxTokens+1, time.Second, 1), rate(1, time.Second, MaxTokens+1), rate(math.MaxInt64, 1, math.MaxInt64),
		} {
			if _, err := NewShape(spec); err == nil {
				t.Errorf("%+v is accepted", spec)
			}
		}
		for _, n := range []int64{0, -1, math.MinInt64, MaxTokens + 1, math.MaxInt64} {
			playFull(t, rate(1e9, time.Second, 1e12), step{0, n, never})
		}
	})
}

func TestRegressionDenials(t *testing.T) {
	t.Run("A07_a_denial_costs_nothing", func(t *testing.T) {
		s := mustShape(t, rate(1, time.Second, 10))
		b := s.Full(0)
		for i := range 30 {
			if _, ok := b.Take(s, 0, 1); ok != (i < 10) {
				t.Fatalf("acquire %d: granted %v, want %v", i, ok, i < 10)
			}
		}
		play(t, s, &b, step{999 * ms, 1, ms}, step{time.Second, 1, 0})
		playFull(t, rate(1, time.Second, 10), step{0, 8, 0}, step{0, 5, 3 * time.Second}, step{0, 2, 0})
		steps := []step{{0, 10, 0}}
		for range 20 {
			steps = append(steps, step{0, 10, 10 * time.Second})
		}
		playFull(t, rate(1, time.Second, 10), append(steps, step{time.Second, 1, 0})...)
	})
	t.Run("A08_retry_after_is_honest", func(t *testing.T) {
		playFull(t, rate(1, time.Second, 1),
			step{0, 1, 0}, step{200 * ms, 1, 800 * ms}, step{999 * ms, 1, ms}, step{time.Second, 1, 0})
		playFull(t, rate(3, time.Second, 1),
			step{0, 1, 0}, step{0, 1, 334 * ms}, step{333 * ms, 1, ms}, step{334 * ms, 1, 0})
	})
	t.Run("A09_slow_and_fractional_rates", func(t *testing.T) {
		playFull(t, rate(1, time.Minute, 1),
			step{0, 1, 0}, step{time.Second, 1, 59000 * ms}, step{59999 * ms, 1, ms}, step{time.Minute, 1, 0})
		playFull(t, rate(6, time.Minute, 1),
			step{0, 1, 0}, step{9999 * ms, 1, ms}, step{10 * time.Second, 1, 0})
		playFull(t, rate(6, time.Minute, 6),
			step{0, 6, 0}, step{10 * time.Second, 1, 0}, step{20 * time.Second, 2, 10000 * ms},
			step{30 * time.Second, 2, 0})
		playFull(t, rate(7, 86400*time.Second, 7),
			step{0, 7, 0}, step{12342 * time.Second, 1, 858 * ms}, step{12343 * time.Second, 1, 0})
		// However slow, a rate is never rounded to none.
		s := mustShape(t, Spec{Amount: 1, Interval: 365 * 24 * time.Hour, Target: 100, Burst: 2})
		b := s.Empty(0)
		if wait, isNever := b.RetryAfter(s, 0, 1); isNever || wait != 36500*24*time.Hour {
			t.Fatalf("one percent of a token a year: retry after %v, %v, want a hundred years", wait, isNever)
		}
		if _, err := NewShape(Spec{Amount: 1, Interval: 365 * 24 * time.Hour, Target: 1, Burst: 1}); err == nil {
			t.Fatal("one in ten thousand years can't be counted exactly, but is accepted")
		}
	})
}

func TestRegressionChanges(t *testing.T) {
	t.Run("A11_an_emptied_bucket_is_full_again_in_time", func(t *testing.T) {
		s := mustShape(t, rate(1, time.Minute, 5))
		b := s.Full(0)
		play(t, s, &b, step{0, 5, 0})
		if at, ok := b.FullAt(s); !ok || at != Instant(5*time.Minute) {
			t.Fatalf("full at %d, %v, want five minutes", at, ok)
		}
		b.Advance(s, Instant(time.Minute))
		if got := b.Level(s); got != 1 {
			t.Fatalf("level %d after a minute, want 1", got)
		}
		b.Advance(s, Instant(5*time.Minute))
		if fresh := s.Full(Instant(5 * time.Minute)); !b.Equal(&fresh) {
			t.Fatalf("bucket %+v after five minutes, want %+v", b, fresh)
		}
	})
	t.Run("A12_a_reload_keeps_what_was_spent", func(t *testing.T) {
		s := mustShape(t, rate(10, time.Second, 10))
		same := mustShape(t, rate(10, time.Second, 10))
		raised := mustShape(t, rate(10, time.Second, 20))
		lowered := mustShape(t, rate(10, time.Second, 5))
		b := s.Full(0)
		play(t, s, &b, step{0, 10, 0})
		b.Advance(s, Instant(50*ms))
		b.Convert(s, same, []int{0})
		play(t, same, &b, step{50 * ms, 1, 50 * ms}, step{100 * ms, 1, 0})
		b.Convert(same, raised, []int{0})
		play(t, raised, &b, step{100 * ms, 1, 100 * ms}, step{1100 * ms, 10, 0})
		b.Advance(raised, Instant(3100*ms))
		if got := b.Level(raised); got != 20 {
			t.Fatalf("level %d two seconds later, want 20", got)
		}
		b.Convert(raised, lowered, []int{0})
		if got := b.Level(lowered); got != 5 {
			t.Fatalf("level %d after lowering the burst to 5, want 5", got)
		}
		play(t, lowered, &b, step{3100 * ms, 6, never}, step{3100 * ms, 5, 0}, step{3100 * ms, 1, 100 * ms})
	})
	t.Run("A12_a_thousand_reloads_a_second_admit_no_more", func(t *testing.T) {
		shapes := []*Shape{mustShape(t, rate(10, time.Second, 10)), mustShape(t, rate(9, time.Second, 11))}
		b := shapes[0].Empty(0)
		for i := range 1000 {
			b.Advance(shapes[i%2], Instant(i+1)*Instant(ms))
			b.Convert(shapes[i%2], shapes[1-i%2], nil)
		}
		// 9.5 tokens a second, less the fractions that rounding down costs.
		if got := b.free * 1000 / shapes[0].unit; got > 9500 || got < 9490 {
			t.Fatalf("%d thousandths of a token after a second, want 9500 or a little less", got)
		}
	})
}

func TestRegressionSettling(t *testing.T) {
	s := mustShape(t, rate(1000, time.Minute, 1000))
	reserved := func(t *testing.T) Bucket {
		t.Helper()
		b := s.Full(0)
		play(t, s, &b, step{0, 1000, 0})
		b.Advance(s, Instant(5*time.Second))
		return b
	}
	t.Run("A23_an_overrun_becomes_debt", func(t *testing.T) {
		b := reserved(t)
		if beyond := b.Excess(s, 0, 200); beyond != 0 {
			t.Fatalf("%d written off, want 0", beyond)
		}
		if got, debt := b.Remaining(s), b.Debt(s, 0); got != -117 || debt != 117 {
			t.Fatalf("remaining %d, debt %d, want -117, 117 (of 116.67)", got, debt)
		}
		play(t, s, &b, step{5 * time.Second, 1, 7060 * ms}, step{12059 * ms, 1, ms}, step{12060 * ms, 1, 0})
	})
	t.Run("A23_what_was_not_used_comes_back", func(t *testing.T) {
		b := reserved(t)
		b.Refund(s, 0, 600, 0)
		if got := b.Remaining(s); got != 683 {
			t.Fatalf("remaining %d, want 683", got)
		}
	})
	t.Run("A23_usage_beyond_the_debt_cap_is_written_off", func(t *testing.T) {
		spec := rate(1000, time.Minute, 1000)
		spec.MaxDebt = 100
		capped := mustShape(t, spec)
		for _, c := range []struct{ excess, wantDebt, wantBeyond int64 }{
			{183, 100, 0}, {184, 100, 1}, {200, 100, 17}, {math.MaxInt64, 100, math.MaxInt64 - 183},
		} {
			t.Run(fmt.Sprint(c.excess), func(t *testing.T) {
				b := reserved(t)
				beyond := b.Excess(capped, 0, c.excess)
				if debt := b.Debt(capped, 0); beyond != c.wantBeyond || debt != c.wantDebt {
					t.Fatalf("written off %d, debt %d, want %d, %d", beyond, debt, c.wantBeyond, c.wantDebt)
				}
			})
		}
	})
	t.Run("A15_a_refund_never_exceeds_the_burst", func(t *testing.T) {
		b := s.Full(0)
		for _, n := range []int64{1, MaxTokens, math.MaxInt64, -1, 0} {
			b.Refund(s, 0, n, math.MaxInt64)
			if full := s.Full(0); !b.Equal(&full) {
				t.Fatalf("refund of %d on a full bucket: %+v", n, b)
			}
		}
	})
}
