package warn_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// batch is a client with so many retries among a hundred requests.
func batch(retries int64) warn.Standing {
	return warn.Standing{
		Client: "batch-scorer", Total: 100, Retries: retries, Window: 5 * time.Minute,
		Above: retries > 10, WarnFraction: 1000, WarnFor: 2 * time.Minute,
		Over: retries > 20, Enforced: true, Error: "429",
	}
}

// told is what a watch says about a client that is looked at every second.
type told struct {
	second int
	kind   warn.Kind
	ended  bool
}

// look looks every second from the first to the last of them.
func look(w *warn.Watch, from, to int, standing func(second int) warn.Standing) []told {
	var all []told
	for second := from; second <= to; second++ {
		for _, c := range w.See(time.Duration(second)*time.Second, standing(second)) {
			all = append(all, told{second, c.Kind, c.Ended})
		}
	}
	return all
}

func expect(t *testing.T, got []told, want ...told) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	constant := func(retries int64) func(int) warn.Standing {
		return func(int) warn.Standing { return batch(retries) }
	}
	t.Run("S1-41", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		expect(t, look(&w, 0, 119, constant(11)))
		expect(t, look(&w, 120, 600, constant(11)), told{120, warn.Warning, false})
	})
	t.Run("S1-42", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		expect(t, look(&w, 0, 90, constant(15)))
		expect(t, look(&w, 91, 1000, constant(10)))
		if w.Len() != 0 {
			t.Errorf("%d clients are watched, want none", w.Len())
		}
	})
	t.Run("S1-41_the_two_minutes_are_in_one_piece", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		dips := func(second int) warn.Standing {
			if second%119 == 0 {
				return batch(10)
			}
			return batch(12)
		}
		expect(t, look(&w, 0, 1000, dips))
	})
	t.Run("S1-39", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		expect(t, look(&w, 0, 9, constant(20)))
		expect(t, look(&w, 10, 100, constant(21)), told{10, warn.Over, false})
	})
	t.Run("each_crossing_once_and_its_end_once", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		storm := func(second int) warn.Standing {
			if second < 300 {
				return batch(92)
			}
			return batch(0)
		}
		expect(t, look(&w, 0, 1000, storm), told{0, warn.Over, false}, told{120, warn.Warning, false},
			told{310, warn.Over, true}, told{310, warn.Warning, true})
		if w.Watches("batch-scorer") {
			t.Error("is watched although all is over")
		}
		expect(t, look(&w, 1001, 1001, constant(92)), told{1001, warn.Over, false})
	})
	t.Run("hovering_is_one_incident", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		hover := func(second int) warn.Standing { return batch(20 + int64(second%2)) }
		expect(t, look(&w, 0, 1000, hover), told{1, warn.Over, false}, told{120, warn.Warning, false})
	})
	t.Run("clients_apart", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		w.See(0, batch(30))
		other := batch(30)
		other.Client = "other"
		if got := w.See(time.Second, other); len(got) != 1 || got[0].Client != "other" {
			t.Errorf("%v, want that of the other", got)
		}
	})
}

// TestTheMoment: what is seen a commit late at both ends is decided to the moment.
func TestTheMoment(t *testing.T) {
	t.Parallel()
	t.Run("S1-41_to_the_moment", func(t *testing.T) {
		t.Parallel()
		for _, row := range []struct {
			length time.Duration
			want   string
		}{
			{119 * time.Second, ""},
			{119899 * time.Millisecond, ""},
			// An end may be seen a commit earlier than the beginning was.
			{120*time.Second - 2*time.Millisecond, "batch-scorer retry fraction 11%, above 10% for 2 min: " +
				"11 of 100 requests in 5 min; commonest error: 429"},
		} {
			var w warn.Watch
			w.See(0, batch(11))
			if at, ok := w.Due(batch(11)); !ok || at != 2*time.Minute {
				t.Errorf("due at %v (%v), want after two minutes", at, ok)
			}
			said := ""
			for _, c := range w.See(row.length, batch(10)) {
				said += c.Text()
			}
			if said != row.want {
				t.Errorf("after %v: %q, want %q", row.length, said, row.want)
			}
			if _, ok := w.Due(batch(10)); ok {
				t.Error("something is due of a client that is below")
			}
		}
	})
	t.Run("a_budget_that_goes_warns_of_nobody", func(t *testing.T) {
		t.Parallel()
		var w warn.Watch
		w.See(0, batch(11))
		got := w.See(time.Second, warn.Standing{Client: "batch-scorer", Total: 100, Retries: 11})
		if len(got) != 0 || w.Len() != 0 {
			t.Errorf("%v, and %d watched; want nothing", got, w.Len())
		}
	})
}

func TestText(t *testing.T) {
	t.Parallel()
	t.Run("S1-48", func(t *testing.T) {
		t.Parallel()
		shadow := batch(30)
		shadow.Enforced, shadow.Error = false, ""
		odd := batch(1)
		odd.Total, odd.Window, odd.WarnFraction = 8, 300*time.Millisecond, 1050
		for _, c := range []struct {
			change warn.Change
			want   string
		}{
			{
				warn.Change{Kind: warn.Warning, Standing: batch(92)},
				"batch-scorer retry fraction 92%, above 10% for 2 min: 92 of 100 requests in 5 min; commonest error: 429",
			},
			{
				warn.Change{Kind: warn.Over, Standing: batch(21)},
				"batch-scorer retry fraction 21%, its retry budget is spent and refuses it: " +
					"21 of 100 requests in 5 min; commonest error: 429",
			},
			{
				warn.Change{Kind: warn.Over, Standing: shadow},
				"batch-scorer retry fraction 30%, its retry budget is spent and would refuse it: 30 of 100 requests in 5 min",
			},
			{
				warn.Change{Kind: warn.Warning, Ended: true, Standing: odd},
				"batch-scorer retry fraction 12.5%, no longer above 10.5%: 1 of 8 requests in 300ms",
			},
			{
				warn.Change{Kind: warn.Over, Ended: true, Standing: warn.Standing{Client: "c", Window: time.Minute}},
				"c retry fraction 0%, within its retry budget again: 0 of 0 requests in 1 min",
			},
		} {
			if got := c.change.Text(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		}
		third := warn.Standing{Total: 3, Retries: 1}
		if got := third.Fraction(); got != "33.33%" {
			t.Errorf("a third is %s", got)
		}
	})
}

// TestBout: nodes that see an incident a moment apart number it alike, and the next
// one of the client is another.
func TestBout(t *testing.T) {
	t.Parallel()
	at := func(now time.Duration) int64 {
		c := warn.Change{Standing: warn.Standing{Now: bucket.Instant(now)}}
		return c.Bout()
	}
	if at(0) == 0 || at(time.Hour) != at(time.Hour+warn.Calm-1) || at(time.Hour) == at(time.Hour+warn.Calm) {
		t.Errorf("%d, then %d, %d and %d", at(0), at(time.Hour), at(time.Hour+warn.Calm-1), at(time.Hour+warn.Calm))
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	s := warn.NewSuspects()
	touched := func() bool {
		select {
		case <-s.Touched:
			return true
		default:
			return false
		}
	}
	lists := func(changed bool, want ...string) {
		t.Helper()
		list := s.List(nil, changed)
		slices.Sort(list)
		if !slices.Equal(list, want) {
			t.Errorf("%v, want %v (changed alone: %v)", list, want, changed)
		}
	}
	s.Touch("a")
	if touched() {
		t.Error("a client that nobody suspects was touched")
	}
	s.Add("a")
	s.Add("a")
	s.Add("b")
	s.Add("d")
	s.Drop("b")
	s.Drop("c")
	if !touched() || touched() {
		t.Error("five changes; want one signal")
	}
	lists(true, "a", "d")
	lists(true)
	s.Touch("d")
	if !touched() {
		t.Error("a suspect's counts have changed, and nobody hears of it")
	}
	lists(true, "d")
	lists(false, "a", "d")
}
