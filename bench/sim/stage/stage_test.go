package stage_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/sim/stage"
)

func never() bool { return false }

func TestOrder(t *testing.T) {
	t.Parallel()
	s := stage.New(1)
	var seen []int
	for i, at := range []time.Duration{3, 1, 2, 1} {
		s.At(nil, at, func() { seen = append(seen, i) })
	}
	s.Run(10, never)
	if want := []int{1, 3, 2, 0}; !slices.Equal(seen, want) {
		t.Errorf("order %v, want %v", seen, want)
	}
	if s.Real() != 10 {
		t.Errorf("time %d, want 10", s.Real())
	}
}

// TestOrderOfMany: what is due at one time happens in the order in which it was asked
// for, also where it is asked for while others happen.
func TestOrderOfMany(t *testing.T) {
	t.Parallel()
	s := stage.New(1)
	type one struct {
		at     time.Duration
		serial int
	}
	var asked int
	var seen []one
	var ask func()
	ask = func() {
		o := one{s.Real() + s.Between(0, 50), asked}
		asked++
		s.At(nil, o.at-s.Real(), func() {
			seen = append(seen, o)
			if asked < 5000 {
				ask()
				ask()
			}
		})
	}
	for range 100 {
		ask()
	}
	s.Run(time.Second, never)
	if len(seen) != asked {
		t.Errorf("%d happened of %d", len(seen), asked)
	}
	inOrder := func(a, b one) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.serial, b.serial)) }
	if !slices.IsSortedFunc(seen, inOrder) {
		t.Error("it did not happen in order")
	}
}

// TestT5Suspension: the monotonic clock of a machine that sleeps stops, the
// boot-time clock doesn't, and what was due happens when it wakes.
func TestT5Suspension(t *testing.T) {
	t.Parallel()
	s := stage.New(1)
	h := s.NewHost("h", stage.Clocks{PPM: 200})
	boot, mono := h.Boot(), h.Mono()
	h.Suspend(10*time.Second, true)
	var woke time.Duration
	s.At(h, time.Second, func() { woke = s.Real() })
	s.Run(20*time.Second, never)
	if woke != 10*time.Second {
		t.Errorf("woke at %v, want 10 s", woke)
	}
	if d := h.Boot() - boot; d != 20*time.Second+4*time.Millisecond {
		t.Errorf("boot-time clock went on by %v", d)
	}
	if d := h.Mono() - mono; d != 10*time.Second+2*time.Millisecond {
		t.Errorf("monotonic clock went on by %v", d)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	s := stage.New(1)
	h := s.NewHost("h", stage.Clocks{})
	happened := 0
	s.At(h, time.Second, func() { happened++ })
	h.Kill()
	h.Start()
	s.At(h, time.Second, func() { happened += 10 })
	s.Run(time.Minute, never)
	if happened != 10 {
		t.Errorf("%d, want 10: what an ended process had planned happens to nobody", happened)
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	s := stage.New(1)
	n := s.NewNetwork()
	a, b := s.NewHost("a", stage.Clocks{}), s.NewHost("b", stage.Clocks{})
	arrived := 0
	send := func(times int) int {
		arrived = 0
		for range times {
			n.Send(a, b, func() { arrived++ })
		}
		s.Run(s.Real()+10*time.Second, never)
		return arrived
	}
	if got := send(100); got != 100 {
		t.Errorf("%d of 100 arrived", got)
	}
	n.Lose, n.Repeat = 2, 2
	if got := send(1000); got < 500 || got > 1000 {
		t.Errorf("%d of 1000 arrived with half of them lost, and half of the others twice", got)
	}
	n.Cut([]*stage.Host{b}, []*stage.Host{a, b}, time.Minute)
	if got := send(100); got != 0 {
		t.Errorf("%d arrived through a cut", got)
	}
	n.Heal()
	if got := send(100); got != 100 {
		t.Errorf("%d of 100 arrived after healing", got)
	}
}
