package told

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client/gateway/circuit"
)

// gate is a gateway: its circuits, and who lets it probe.
type gate struct {
	*circuit.Board
	prober *Prober
	began  time.Time
}

func (g *gate) now() time.Duration { return time.Since(g.began) }

// forward makes one try of a new call; nil where it is refused.
func (g *gate) forward() (*circuit.Try, circuit.Verdict) {
	return g.Call("a", "d", circuit.Shed).Forward(g.now())
}

// fleet runs f with gateways whose circuit of "a" is open for 30 s.
func fleet(t *testing.T, n int, c ProberConfig, f func(t *testing.T, s *slots, all []*gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots()
		c.Authority = s
		var all []*gate
		for range n {
			p, err := NewProber(c)
			if err != nil {
				t.Fatal(err)
			}
			g := &gate{board(t, circuit.Config{Shared: p, Prober: p}), p, time.Now()}
			g.Learn(0, tenant("a"), circuit.Notice{Wait: 30 * second})
			all = append(all, g)
		}
		f(t, s, all)
		for _, g := range all {
			if err := g.prober.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := s.taken(); n != 0 {
			t.Errorf("%d slots are taken after all have closed", n)
		}
	})
}

// probing forwards until a probe is permitted, for at most that long.
func probing(t *testing.T, g *gate, most time.Duration) *circuit.Try {
	t.Helper()
	for end := g.now() + most; g.now() < end; pass(100 * time.Millisecond) {
		if try, v := g.forward(); try != nil {
			if !v.Probe {
				t.Errorf("forwarded, and is no probe: %+v", v)
			}
			return try
		}
	}
	return nil
}

func TestOneProbe(t *testing.T) {
	t.Run("S2-26_of_forty_gateways", func(t *testing.T) {
		fleet(t, 40, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(29 * second)
			var mu sync.Mutex
			probes, under, sent := 0, 0, make([]time.Duration, len(all))
			var running sync.WaitGroup
			for i, g := range all {
				running.Go(func() {
					// A request each 100 ms, until one is sent that is no probe.
					for <-time.After(time.Duration(i) * time.Millisecond); sent[i] == 0; <-time.After(100 * time.Millisecond) {
						try, v := g.forward()
						if try == nil {
							continue
						}
						if !v.Probe {
							sent[i] = g.now()
							continue
						}
						mu.Lock()
						probes++
						if under++; under > 1 {
							t.Errorf("%d probes at once", under)
						}
						mu.Unlock()
						<-time.After(2 * second)
						mu.Lock()
						under--
						mu.Unlock()
						try.Done(g.now(), circuit.Succeeded, 0)
					}
				})
			}
			running.Wait()
			last := time.Duration(0)
			for i, at := range sent {
				last = max(last, at)
				if at < 32*second {
					t.Errorf("gateway %d goes on after %v, before the probe was answered", i, at)
				}
			}
			if probes != 1 || last > 35*second {
				t.Errorf("%d probes, the last gateway goes on after %v", probes, last)
			}
			t.Logf("one probe from 30 s to 32 s, all go on until %v: %d acquires, %d looks", last, s.acquires, s.looks)
		})
	})
	t.Run("S2-26_nobody_probes_while_it_is_open_again", func(t *testing.T) {
		fleet(t, 2, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(30 * second)
			try := probing(t, all[0], 2*second)
			if try == nil || probing(t, all[1], 3*second) != nil {
				t.Fatal("no probe, or two")
			}
			try.Done(all[0].now(), circuit.Throttled, 20*second)
			if probing(t, all[1], 28*second) != nil {
				t.Error("another gateway probes while the circuit is open")
			}
			if probing(t, all[1], 5*second) == nil {
				t.Error("nobody probes when it may be closed")
			}
			if s.taken() != 1 {
				t.Errorf("%d slots are taken", s.taken())
			}
		})
	})
	t.Run("S2-26_the_same_gateway_after_a_probe_that_told_nothing", func(t *testing.T) {
		fleet(t, 2, ProberConfig{}, func(t *testing.T, _ *slots, all []*gate) {
			pass(30 * second)
			probing(t, all[0], 2*second).Done(all[0].now(), circuit.Other, 0)
			if probing(t, all[1], second) != nil {
				t.Error("another gateway probes")
			}
			if probing(t, all[0], 2*second) == nil {
				t.Error("it does not probe again")
			}
			// That one is never answered.
			if probing(t, all[1], 50*second) != nil {
				t.Error("another gateway probes before the time is over")
			}
			if probing(t, all[1], 15*second) == nil {
				t.Error("nobody probes after the time is over")
			}
		})
	})
}

// TestOldMark: a mark is about the opening that it closed.
func TestOldMark(t *testing.T) {
	t.Run("S2-26_what_closed_before_closes_nothing_now", func(t *testing.T) {
		fleet(t, 2, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(30 * second)
			probing(t, all[0], 2*second).Done(all[0].now(), circuit.Succeeded, 0)
			pass(second)
			if s.taken() != 1 || all[0].prober.Stats().Held != 1 {
				t.Errorf("%d slots are taken, want the mark: %+v", s.taken(), all[0].prober.Stats())
			}
			all[1].Learn(all[1].now(), tenant("a"), circuit.Notice{Wait: 5 * second})
			pass(5 * second)
			if probing(t, all[1], 2*second) == nil {
				t.Error("it does not probe")
			}
			if s := all[1].prober.Stats(); s.Closed != 0 {
				t.Errorf("%+v: it believes an old mark", s)
			}
		})
	})
}

// TestNoSlot: a circuit must not stay open for want of a slot.
func TestNoSlot(t *testing.T) {
	for name, breaks := range map[string]func(*slots){
		"nobody_answers": func(s *slots) { s.local = true },
		"no_such_limit":  func(s *slots) { s.fails = errors.New("LIMIT_NOT_FOUND") },
		"it_hangs":       func(s *slots) { s.takes = time.Hour },
		"there_is_none":  func(s *slots) { s.none = true },
	} {
		t.Run("S2-26_each_for_itself_where_"+name, func(t *testing.T) {
			fleet(t, 2, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
				breaks(s)
				pass(30 * second)
				for i, g := range all {
					try := probing(t, g, 8*second)
					if try == nil {
						t.Fatalf("gateway %d stays closed", i)
					}
					try.Done(g.now(), circuit.Succeeded, 0)
					if s := g.prober.Stats(); s.Alone != 1 || s.Granted != 0 || s.Held != 0 {
						t.Errorf("%+v", s)
					}
				}
				s.mu.Lock()
				s.takes = 0
				s.mu.Unlock()
			})
		})
	}
}

// TestSlotsComeBack: whatever becomes of who has one.
func TestSlotsComeBack(t *testing.T) {
	t.Run("S2-26_a_slot_for_which_no_request_comes", func(t *testing.T) {
		fleet(t, 2, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(30 * second)
			all[0].forward()
			pass(second)
			if s.taken() != 1 {
				t.Fatalf("%d slots are taken", s.taken())
			}
			pass(6 * second)
			if s.taken() != 0 || all[0].prober.Stats().Unused != 1 {
				t.Errorf("%d slots are taken, %+v", s.taken(), all[0].prober.Stats())
			}
		})
	})
	t.Run("S2-26_a_gateway_that_ends_while_it_probes", func(t *testing.T) {
		fleet(t, 2, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(30 * second)
			if probing(t, all[0], 2*second) == nil {
				t.Fatal("no probe")
			}
			all[0].forward()
			if err := all[0].prober.Close(); err != nil || s.taken() != 0 {
				t.Errorf("%v, %d slots are taken", err, s.taken())
			}
			if all[0].prober.Claim(0, tenant("a"), second) {
				t.Error("closed, and it may probe")
			}
			if probing(t, all[1], 2*second) == nil {
				t.Error("the other one does not probe")
			}
		})
	})
	t.Run("S2-26_a_slot_that_is_granted_after_the_end", func(t *testing.T) {
		fleet(t, 1, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(30 * second)
			s.takes = 300 * time.Millisecond
			all[0].forward()
			pass(400 * time.Millisecond)
			if err := all[0].prober.Close(); err != nil || s.acquires != 1 || s.taken() != 0 {
				t.Errorf("%v, %d acquires, %d slots are taken", err, s.acquires, s.taken())
			}
		})
	})
	t.Run("S2-26_a_mark_that_is_made_after_the_end", func(t *testing.T) {
		fleet(t, 1, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(30 * second)
			try := probing(t, all[0], 2*second)
			s.takes = 300 * time.Millisecond
			try.Done(all[0].now(), circuit.Succeeded, 0)
			pass(100 * time.Millisecond)
			if err := all[0].prober.Close(); err != nil || s.acquires != 2 || s.taken() != 0 {
				t.Errorf("%v, %d acquires, %d slots are taken", err, s.acquires, s.taken())
			}
		})
	})
	t.Run("what_can_not_be_given_back", func(t *testing.T) {
		fleet(t, 1, ProberConfig{}, func(t *testing.T, s *slots, all []*gate) {
			pass(30 * second)
			probing(t, all[0], 2*second)
			s.mu.Lock()
			s.takes = time.Hour
			s.mu.Unlock()
			began := time.Now()
			err := all[0].prober.Close()
			if want := "close: 1 slots of probes were not given back"; err == nil || err.Error() != want {
				t.Errorf("%v, want %q", err, want)
			}
			if took := time.Since(began); took != 2*second {
				t.Errorf("it took %v", took)
			}
			all[0].prober.failure = nil
			pass(time.Minute)
		})
	})
}

func TestProberBounds(t *testing.T) {
	t.Run("S2-27_they_are_bounded", func(t *testing.T) {
		fleet(t, 1, ProberConfig{Keys: 16, Asking: 2}, func(t *testing.T, s *slots, all []*gate) {
			p := all[0].prober
			for n := range 1000 {
				p.Claim(0, tenant(fmt.Sprint(n)), second)
			}
			claims := func() int {
				p.mu.Lock()
				defer p.mu.Unlock()
				return len(p.mu.claims)
			}
			pass(second)
			if n := claims(); n != 16 || s.acquires != 16 {
				t.Errorf("%d claims, %d asked", n, s.acquires)
			}
			pass(10 * second)
			if n := claims(); n != 0 || s.taken() != 0 {
				t.Errorf("%d claims are left, and %d slots taken", n, s.taken())
			}
		})
	})
	t.Run("no_two_have_one_key", func(t *testing.T) {
		seen := map[string]circuit.Key{}
		for _, key := range []circuit.Key{
			{Tenant: "a", Deployment: "b|c"},
			{Tenant: "a|b", Deployment: "c"},
			{Deployment: "a|b"},
			{Deployment: "a|b", All: true},
			{Tenant: "a", Deployment: "b"},
			{Tenant: `\all`, Deployment: "a|b"},
			{Tenant: `\closed`, Deployment: "a|b"},
			{Tenant: strings.Repeat("|", 256), Deployment: "d"},
		} {
			for _, text := range []string{slotOf(key), markOf(key)} {
				if other, is := seen[text]; is || len(text) > keyMax {
					t.Errorf("%+v and %+v have the key %q", key, other, text)
				}
				seen[text] = key
			}
		}
	})
	t.Run("configuration", func(t *testing.T) {
		_, err := NewProber(ProberConfig{Limit: "No", Again: 1, Unused: 1, Mark: 1, Asking: -1, Keys: 1, CloseWithin: -1})
		want := `prober configuration: limit: "No" may not have 'N' there
again: 1ns, 100ms to 1m0s
unused: 1ns, 100ms to 1m0s
mark: 1ns, 1s to 1m0s
asking: -1, 1 to 1024
keys: 1, 16 to 1048576
close within: -1ns, 1ms to 1m0s
authority: missing`
		if err == nil || err.Error() != want {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
	})
}
