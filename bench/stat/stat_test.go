package stat

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestJain(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		got  []int64
		want float64
	}{
		{[]int64{5, 5, 5, 5}, 1},
		{[]int64{8, 0, 0, 0}, 0.25},
		{[]int64{1, 3}, 0.8},
		{[]int64{0, 0}, 1},
		{nil, 1},
		{[]int64{1 << 40, 1 << 40}, 1},
	} {
		if got := Jain(row.got); math.Abs(got-row.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, want %v", row.got, got, row.want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rounds []float64
		want   Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{9, 1, 5}, Spread{5, 1, 9}},
		{[]float64{4, 1, 2, 10}, Spread{3, 1, 10}},
	} {
		if got := SpreadOf(row.rounds); got != row.want {
			t.Errorf("SpreadOf(%v) = %v, want %v", row.rounds, got, row.want)
		}
	}
}

func TestChooser(t *testing.T) {
	t.Parallel()
	const draws, keys = 100_000, 10
	count := func(d Distribution) (counts [keys]int) {
		c, err := NewChooser(d, keys, rand.NewPCG(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		for range draws {
			counts[c.Next()]++
		}
		return counts
	}
	if got := count(Hot); got[0] != draws {
		t.Errorf("hot: %v, want all on key 0", got)
	}
	for key, n := range count(Uniform) {
		if n < draws/keys*9/10 || n > draws/keys*11/10 {
			t.Errorf("uniform: key %d was drawn %d times of %d, want about %d", key, n, draws, draws/keys)
		}
	}
	zipf := count(Zipf)
	for key := 1; key < keys; key++ {
		want := float64(zipf[0]) / math.Pow(float64(key+1), zipfExponent)
		if got := float64(zipf[key]); math.Abs(got-want) > 0.1*want {
			t.Errorf("zipf: key %d was drawn %.0f times, want about %.0f", key, got, want)
		}
	}
	for _, bad := range []struct {
		d    Distribution
		keys int
	}{{"cold", 1}, {Hot, 0}} {
		if _, err := NewChooser(bad.d, bad.keys, rand.NewPCG(1, 2)); err == nil {
			t.Errorf("distribution %q over %d keys: no error", bad.d, bad.keys)
		}
	}
}

func TestScheduleEven(t *testing.T) {
	t.Parallel()
	// 1000 a second over 4 callers: each 4 ms apart, shifted by 1 ms.
	for index := range 4 {
		s, err := NewSchedule(Even, 1000, 4, index, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			want := time.Duration(index)*time.Millisecond + time.Duration(n)*4*time.Millisecond
			if got := s.Next(); got != want {
				t.Errorf("caller %d, start %d: %v, want %v", index, n, got, want)
			}
		}
	}
}

func TestSchedulePoisson(t *testing.T) {
	t.Parallel()
	const perSecond, callers, length = 10_000, 8, 10 * time.Second
	var starts int
	// A Poisson process has as many starts in a slot as its mean, and the same
	// variance.
	var slots [1000]float64
	for index := range callers {
		s, err := NewSchedule(Poisson, perSecond, callers, index, rand.NewPCG(3, uint64(index)))
		if err != nil {
			t.Fatal(err)
		}
		last := time.Duration(-1)
		for at := s.Next(); at < length; at = s.Next() {
			if at < last {
				t.Fatalf("start at %v after one at %v", at, last)
			}
			last = at
			starts++
			slots[at/(length/1000)]++
		}
	}
	if want := 100_000; math.Abs(float64(starts-want)) > 1500 {
		t.Errorf("%d starts in %v, want about %d", starts, length, want)
	}
	var variance float64
	for _, n := range slots {
		variance += (n - 100) * (n - 100) / float64(len(slots))
	}
	if variance < 80 || variance > 120 {
		t.Errorf("variance of starts in a slot: %.1f, want about 100", variance)
	}
}

func TestScheduleRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a              Arrivals
		perSecond      float64
		callers, index int
	}{{"bursty", 1, 1, 0}, {Even, 0, 1, 0}, {Even, -1, 1, 0}, {Even, 1, 0, 0}, {Even, 1, 1, 1}, {Even, 1, 1, -1}} {
		if _, err := NewSchedule(row.a, row.perSecond, row.callers, row.index, rand.NewPCG(1, 1)); err == nil {
			t.Errorf("%+v: no error", row)
		}
	}
}

func TestLatencies(t *testing.T) {
	t.Parallel()
	l, other := NewLatencies(), NewLatencies()
	if got := l.At(99); got != 0 {
		t.Errorf("p99 of nothing: %v, want 0", got)
	}
	for n := 1; n <= 1000; n++ {
		to := l
		if n%2 == 0 {
			to = other
		}
		to.Record(time.Duration(n) * time.Millisecond)
	}
	l.Add(other)
	for percent, want := range map[float64]time.Duration{50: 500e6, 99: 990e6, 99.9: 999e6, 100: 1000e6} {
		if got := l.At(percent); math.Abs(float64(got-want)) > 0.001*float64(want) {
			t.Errorf("p%g: %v, want %v", percent, got, want)
		}
	}
	if l.Count() != 1000 {
		t.Errorf("count %d, want 1000", l.Count())
	}
	l.Record(0)
	l.Record(time.Hour)
	if got := l.Max(); l.Count() != 1002 || got < time.Hour || got > time.Hour+4*time.Second {
		t.Errorf("after 0 and an hour: count %d, max %v; want 1002 and an hour", l.Count(), got)
	}
	l.Record(24 * time.Hour)
	if got := l.Max(); got < 2*time.Hour || got > 2*time.Hour+8*time.Second {
		t.Errorf("after a day: max %v; want two hours", got)
	}
}
