package failopen

import (
	"testing"
	"time"
)

// booked is a machine that has learnt of a limit of 100/s, burst 100, to be shared, of
// which the file gives a quarter to those without a promise.
func booked(t *testing.T) *Machine {
	t.Helper()
	m := mustMachine(t, Config{Booked: true})
	if err := m.Learn(start, Lesson{Revision: 1, Limits: []Fallback{quarter()}}); err != nil {
		t.Fatal(err)
	}
	return m
}

func promise(version uint64, ppm int64) Promise {
	return Promise{Limit: "l", Version: version, SharePPM: ppm, ValidFor: 10 * time.Second, Hold: 10 * time.Minute}
}

// lose makes the machine away at now.
func lose(t *testing.T, m *Machine, now time.Time) {
	t.Helper()
	for range enterMisses {
		m.Observe(now, Slow)
	}
	if !m.Away() {
		t.Fatal("not away")
	}
}

// TestPromises is what a client makes of what it was promised.
func TestPromises(t *testing.T) {
	t.Parallel()
	t.Run("T52_nothing_was_promised_yet", func(t *testing.T) {
		t.Parallel()
		m := booked(t)
		lose(t, m, start.Add(time.Second))
		if got := m.Decide(start.Add(time.Hour), ask(1)); got.Reason != NoShare {
			t.Errorf("%+v: a newcomer has no share, and not that of the file", got)
		}
	})
	t.Run("T52_nothing_is_a_promise", func(t *testing.T) {
		t.Parallel()
		m := booked(t)
		m.Promised(start, []Promise{promise(1, 500_000)})
		if m.Promised(start, []Promise{promise(2, 0)}); len(m.Held()) != 1 || m.Held()[0].Version != 2 {
			t.Errorf("holds %+v, want the promise of nothing", m.Held())
		}
		lose(t, m, start.Add(time.Second))
		if got := m.Decide(start.Add(time.Hour), ask(1)); got.Reason != NoShare {
			t.Errorf("%+v: a share of nothing is nothing", got)
		}
	})
	t.Run("T50_an_older_answer_changes_nothing", func(t *testing.T) {
		t.Parallel()
		m := booked(t)
		if !m.Promised(start, []Promise{promise(5, 100_000)}) {
			t.Error("a new version is no change")
		}
		if m.Promised(start.Add(time.Second), []Promise{promise(4, 1_000_000), promise(0, 1_000_000)}) {
			t.Error("an older version is a change")
		}
		if held := m.Held(); held[0].Version != 5 || held[0].SharePPM != 100_000 {
			t.Errorf("holds %+v, want version 5", held)
		}
	})
	t.Run("T33_changed_numbers_keep_the_promise", func(t *testing.T) {
		t.Parallel()
		m := booked(t)
		m.Promised(start, []Promise{promise(3, 100_000)})
		faster := quarter()
		faster.Dimensions = []Dimension{{"requests", 200, time.Second, 200}}
		if err := m.Learn(start, Lesson{Revision: 2, Limits: []Fallback{faster}}); err != nil {
			t.Fatal(err)
		}
		if held := m.Held(); held[0].Version != 3 || held[0].SharePPM != 100_000 {
			t.Errorf("holds %+v, want version 3", held)
		}
	})
	t.Run("A20_forgone", func(t *testing.T) {
		t.Parallel()
		m := booked(t)
		m.Promised(start, []Promise{promise(3, 500_000)})
		if held := m.Forgo(); len(held) != 1 || held[0].Version != 3 {
			t.Errorf("gave up %+v, want version 3", held)
		}
		lose(t, m, start.Add(time.Second))
		if got := m.Decide(start.Add(time.Hour), ask(1)); got.Reason != NoShare {
			t.Errorf("%+v: what was given up is used", got)
		}
	})
}

// TestPromisesEnd: within valid_for of the last refresh a client may begin to use its
// share, and until hold it may use it. Beyond that it paces all the same, and says that
// nothing bounds what all admit together.
func TestPromisesEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// lost and used are after the last refresh, slept how long the machine was
		// suspended meanwhile.
		lost, used, slept time.Duration
		bounded           bool
	}{
		{"A20_in_time", 9 * time.Second, time.Minute, 0, true},
		{"A20_begun_too_late", 11 * time.Second, time.Minute, 0, false},
		{"A20_at_the_end", time.Second, 9*time.Minute + 59*time.Second, 0, true},
		{"A20_clocks_differ", time.Second, 9*time.Minute + 59*time.Second + 500*time.Millisecond, 0, false},
		{"A20_held_no_longer", time.Second, 11 * time.Minute, 0, false},
		{"T5_after_a_suspension", time.Second, 9 * time.Minute, 2 * time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := booked(t)
			m.Promised(start, []Promise{promise(1, 500_000)})
			// A refresh later begins it anew.
			refreshed := start.Add(time.Hour)
			m.Promised(refreshed, []Promise{promise(1, 500_000)})
			lose(t, m, refreshed.Add(c.lost))
			m.Overslept(c.slept)
			now := refreshed.Add(c.used)
			if got := m.Decide(now, ask(1)); !got.Admit {
				t.Fatalf("%+v, want it admitted: a broken guardrail is no outage", got)
			}
			spent := m.Summary(now).Spent
			if len(spent) != 1 || spent[0].Bounded != c.bounded || spent[0].Tokens != 1 {
				t.Errorf("%+v, want bounded %t", spent, c.bounded)
			}
		})
	}
}
