package patience

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestRound(t *testing.T) {
	t.Parallel()
	const least, most = 25 * time.Millisecond, 100 * time.Millisecond
	var r Round
	wait := func() time.Duration { return r.Wait(least, most) }
	if got := wait(); got != most {
		t.Errorf("nothing is known: %v, want %v", got, most)
	}
	r.Note(0)
	if got := wait(); got != least {
		t.Errorf("an answer at once: %v, want %v", got, least)
	}
	random := rand.New(rand.NewPCG(1, 1))
	takes := func(mean time.Duration, n int) {
		for range n {
			r.Note(time.Duration(random.ExpFloat64() * float64(mean)))
		}
	}
	takes(time.Millisecond, 1000)
	if got := wait(); got != least {
		t.Errorf("answers after a millisecond: %v, want %v", got, least)
	}
	// The mean deviation of an exponential distribution is 2/e of its mean.
	takes(15*time.Millisecond, 1000)
	if got := wait(); got < 40*time.Millisecond || got > 80*time.Millisecond {
		t.Errorf("answers after 15 ms: %v, want some 59 ms", got)
	}
	takes(time.Second, 1000)
	if got := wait(); got != most {
		t.Errorf("answers after a second: %v, want %v", got, most)
	}
	takes(time.Millisecond, 1000)
	if got := wait(); got != least {
		t.Errorf("answers after a millisecond again: %v, want %v", got, least)
	}
}

func TestRoundAllocatesNothing(t *testing.T) {
	var r Round
	if n := testing.AllocsPerRun(100, func() { r.Note(time.Millisecond); r.Wait(0, time.Second) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
