package circuit

import "testing"

// opened is a board on which the circuit of "a" has opened at 0, for 31 s.
func opened(t *testing.T) *Board {
	t.Helper()
	b := board(t, Config{})
	throttle(b, 0, "a", 3, 0)
	return b
}

func TestHalfOpen(t *testing.T) {
	t.Run("one_probe", func(t *testing.T) {
		b := opened(t)
		if forward(b, 31*second-1, "a") != nil {
			t.Error("too soon")
		}
		call := b.Call("a", "d", Shed)
		if v := call.Look(31 * second); v.Action != Forward || !v.Probe {
			t.Errorf("before the probe: %+v", v)
		}
		probe, v := call.Forward(31 * second)
		if probe == nil || !v.Probe {
			t.Fatalf("no probe: %+v", v)
		}
		if try, v := b.Call("a", "d", Shed).Forward(32 * second); try != nil || v.Left != second {
			t.Errorf("a second one: %+v", v)
		}
		probe.Done(33*second, Succeeded, 0)
		probe.Done(33*second, Throttled, 0)
		for range 2 {
			if forward(b, 33*second, "a") == nil {
				t.Error("it did not close")
			}
		}
		if s := b.Stats(); s.Opened != 1 || s.Closed != 1 || s.Probes != 1 || s.Open != 0 || s.Shed != 2 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("S2-16_opens_again", func(t *testing.T) {
		b := opened(t)
		forward(b, 31*second, "a").Done(32*second, Throttled, 40*second)
		if left := b.Left(32*second, Key{Tenant: "a", Deployment: "d"}); left != 41*second {
			t.Errorf("%v left, want 41 s", left)
		}
	})
	t.Run("a_probe_that_tells_nothing", func(t *testing.T) {
		b := opened(t)
		forward(b, 31*second, "a").Done(32*second, Other, 0)
		if forward(b, 32*second, "a") != nil {
			t.Error("the next one came at once")
		}
		if try := forward(b, 33*second, "a"); try == nil || try.probes[tenants] == 0 {
			t.Errorf("the next one: %+v", try)
		}
	})
	t.Run("a_lost_probe", func(t *testing.T) {
		b := opened(t)
		lost := forward(b, 31*second, "a")
		if forward(b, 90*second, "a") != nil {
			t.Error("a second one")
		}
		next := forward(b, 91*second, "a")
		if next == nil || b.Stats().Lost != 1 {
			t.Fatalf("none after it is lost: %+v", b.Stats())
		}
		lost.Done(92*second, Succeeded, 0)
		if forward(b, 92*second, "a") != nil {
			t.Error("the lost one closed it")
		}
		alone := opened(t)
		lost = forward(alone, 31*second, "a")
		lost.Done(91*second, Succeeded, 0)
		if try := forward(alone, 91*second, "a"); try == nil || try.probes[tenants] == 0 {
			t.Errorf("after one that was lost and came back: %+v, want a probe", try)
		}
		next.Done(92*second, Succeeded, 0)
		if forward(b, 92*second, "a") == nil {
			t.Error("it did not close")
		}
	})
}

// TestLateAnswers: what was sent before a circuit opened.
func TestLateAnswers(t *testing.T) {
	t.Run("what_was_sent_before", func(t *testing.T) {
		b := board(t, Config{})
		early := forward(b, 0, "a")
		late := forward(b, 0, "a")
		throttle(b, 0, "a", 3, 0)
		early.Done(second, Succeeded, 0)
		if forward(b, second, "a") != nil {
			t.Error("an answer to what was sent before closed it")
		}
		late.Done(second, Throttled, 60*second)
		if left := b.Left(second, Key{Tenant: "a", Deployment: "d"}); left != 60*second {
			t.Errorf("%v left although 60 s were asked for", left)
		}
	})
	t.Run("S3-24_a_wait_that_is_told_while_probing", func(t *testing.T) {
		b := board(t, Config{})
		late := forward(b, 0, "a")
		throttle(b, 0, "a", 3, 0)
		probe := forward(b, 31*second, "a")
		late.Done(32*second, Throttled, 60*second)
		if probe.Stands(32 * second) {
			t.Error("the probe stands")
		}
		probe.Done(33*second, Succeeded, 0)
		if left := b.Left(33*second, Key{Tenant: "a", Deployment: "d"}); left != 59*second {
			t.Errorf("%v left although 60 s were asked for at 32 s", left)
		}
	})
}
