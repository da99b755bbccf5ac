package attempt

import (
	"math/rand/v2"
	"testing"
	"time"
)

// people send work that is new each time, at moments that know nothing of one another, so many
// a second from a moment to another. It returns how many they sent, and how many of these count as
// retries.
func people(tab *Table, perSecond float64, from, to time.Duration, o Outcome) (sent, suspected int) {
	r := rand.New(rand.NewPCG(uint64(from), 1))
	for at := from; ; sent++ {
		at += time.Duration(r.ExpFloat64() * float64(time.Second) / perSecond)
		if at >= to {
			return sent, suspected
		}
		call := tab.Begin(at, work("people", int(at)))
		suspected += int(call.Attempt)
		call.End(at+50*time.Millisecond, o)
	}
}

// TestWhoFaredWell: an outage makes nobody a client that retries who sends no more than before. A
// loop is found in spite of what its client did before.
func TestWhoFaredWell(t *testing.T) {
	t.Run("S1-33_an_outage", func(t *testing.T) {
		tab := table(t, Config{})
		people(tab, 5, 0, time.Minute, Succeeded)
		sent, suspected := people(tab, 5, time.Minute, 3*time.Minute, Throttled)
		if suspected*200 > sent {
			t.Errorf("%d of %d that never retry are suspected during an outage, want a two hundredth at most", suspected, sent)
		}
		people(tab, 5, 3*time.Minute, 4*time.Minute, Succeeded)
		if s := tab.Stats(); s.Suspected != uint64(suspected) {
			t.Errorf("%d suspected after it", s.Suspected-uint64(suspected))
		}
	})
	t.Run("S1-14_a_loop", func(t *testing.T) {
		tab := table(t, Config{})
		people(tab, 5, 0, time.Minute, Succeeded)
		sent, suspected := people(tab, 50, time.Minute, 2*time.Minute, Throttled)
		if suspected*10 < sent*8 {
			t.Errorf("%d of %d of a loop are suspected, want four fifths", suspected, sent)
		}
	})
	t.Run("S1-14_nobody_knows_it", func(t *testing.T) {
		tab := table(t, Config{})
		sent, suspected := people(tab, 5, 0, time.Minute, Throttled)
		if suspected*10 < sent*8 {
			t.Errorf("%d of %d are suspected, want four fifths", suspected, sent)
		}
	})
}
