package overview

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSketch: what makes up more than one part in places is there, and no count is
// too low.
func TestSketch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 8).Draw(t, "places")
		s, counts, sum := newSketch(places), map[string]int64{}, int64(0)
		for _, one := range rapid.SliceOfN(rapid.IntRange(0, 20), 1, 200).Draw(t, "names") {
			// Small numbers come more often.
			name := fmt.Sprint(one * one / 8)
			s.add(name, 1)
			counts[name]++
			sum++
		}
		kept := map[string]bool{}
		for _, p := range s.places[:s.used] {
			kept[string(p.name)] = true
			if p.count < counts[string(p.name)] {
				t.Fatalf("%s: %d, want at least %d", p.name, p.count, counts[string(p.name)])
			}
		}
		for name, n := range counts {
			if n*int64(places) > sum && !kept[name] {
				t.Fatalf("%s came %d times of %d and is not kept", name, n, sum)
			}
		}
		for s.used > 0 {
			s.halve()
		}
		if _, ok := s.most(); ok {
			t.Fatal("something is left")
		}
	})
}

// TestTimes: a time is in a slot whose border is above it by a quarter at most.
func TestTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		took := time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "took"))
		border := upTo(slot(took))
		if border < took || border > took+took/4+time.Microsecond {
			t.Fatalf("%v is below %v", took, border)
		}
	})
	if got := upTo(slot(time.Hour)); got < 2*time.Minute {
		t.Errorf("an hour is below %v", got)
	}
}
