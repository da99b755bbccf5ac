package contention

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/stat"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// slow is a server that answers in a millisecond, but hangs for a second after the
// first one. It grants and denies in turn.
type slow struct {
	asked  int
	failed bool
	used   time.Duration
}

func (s *slow) asker(int) (asker, error) { return s, nil }

func (s *slow) cpu() (time.Duration, error) {
	s.used += time.Second
	return s.used, nil
}

func (s *slow) ask(ctx context.Context, _ int) (answer, error) {
	s.asked++
	took := time.Millisecond
	if s.asked == 100 {
		took = time.Second
	}
	if err := sleep(ctx, took); err != nil {
		return answer{}, err
	}
	if s.failed {
		return answer{}, errors.New("away")
	}
	return answer{granted: s.asked%2 == 0, local: s.asked%10 == 0}, nil
}

// loaded is one round of one caller.
func loaded(t *testing.T, change func(*Config, *slow)) *measured {
	t.Helper()
	config := Default()
	config.Callers, config.Arrivals, config.Warmup, config.Length = 1, stat.Even, 0, 3*time.Second
	s := &slow{}
	change(&config, s)
	m, err := (&drive{config: &config}).run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// longerThan is how many answers took longer.
func longerThan(m *measured, d time.Duration) (n int64) {
	for percent := 0.0; percent <= 100; percent += 0.01 {
		if m.latencies.At(percent) > d {
			return int64(float64(m.latencies.Count()) * (100 - percent) / 100)
		}
	}
	return 0
}

func TestOpenLoopCountsFromTheIntendedStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// 100 a second: while one hangs for a second, a hundred become due. Each of
		// them has waited, the first for nearly a second.
		m := loaded(t, func(c *Config, _ *slow) { c.Rate = 100 })
		if got := m.granted + m.denied; got < 295 || got > 300 {
			t.Errorf("%d answers in 3 s at 100/s, want about 299", got)
		}
		if got := longerThan(m, 500*time.Millisecond); got < 45 || got > 60 {
			t.Errorf("%d answers took longer than 500 ms, want about 55", got)
		}
		if got := m.latencies.Max(); got < 990*time.Millisecond || got > 1010*time.Millisecond {
			t.Errorf("the longest took %v, want 1s", got)
		}
		if m.backlog > 2 || m.failed != 0 {
			t.Errorf("backlog %d, failed %d; want nothing left", m.backlog, m.failed)
		}
	})
}

func TestClosedLoopWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := loaded(t, func(*Config, *slow) {})
		if got := m.granted + m.denied; got < 1990 || got > 2001 {
			t.Errorf("%d answers in 3 s with one of a second, want about 2000", got)
		}
		if got := longerThan(m, 500*time.Millisecond); got > 1 || m.latencies.Max() < time.Second {
			t.Errorf("%d answers took longer than 500 ms, the longest %v; want one of 1s", got, m.latencies.Max())
		}
		if m.local < 195 || m.local > 201 {
			t.Errorf("%d local answers, want about 200", m.local)
		}
		if m.cpu == nil || *m.cpu != time.Second || len(m.perCaller) != 1 || m.perCaller[0] != m.granted {
			t.Errorf("processor time %v, granted to each %v", m.cpu, m.perCaller)
		}
		var granted int64
		for i := range m.slots {
			granted += m.slots[i].granted.Load()
		}
		if len(m.slots) != 30 || granted != m.granted {
			t.Errorf("%d slots with %d grants, want 30 with %d", len(m.slots), granted, m.granted)
		}
	})
}

func TestTooSlowForItsSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// 2000 a second of a server that does 1000: the rest is a backlog.
		m := loaded(t, func(c *Config, s *slow) { c.Rate, s.asked = 2000, 100 })
		if m.backlog < 2950 || m.backlog > 3050 {
			t.Errorf("backlog %d, want about 3000", m.backlog)
		}
		if got := m.latencies.Max(); got < 1400*time.Millisecond {
			t.Errorf("the longest took %v, want about 1.5s", got)
		}
	})
}

func TestFailuresAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := loaded(t, func(_ *Config, s *slow) { s.failed, s.asked = true, 100 })
		if m.failed < 490 || m.failed > 501 || m.failures["UNREACHABLE"] != m.failed || m.latencies.Count() != 0 {
			t.Errorf("failed %d, %v, with %d latencies; want about 500 and none", m.failed, m.failures, m.latencies.Count())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// One hangs beyond the end and beyond its time.
		m := loaded(t, func(c *Config, s *slow) {
			c.Length, c.Timeout, s.asked = 800*time.Millisecond, 500*time.Millisecond, 99
		})
		if m.failures["UNANSWERED"] != 1 || m.failed != 1 {
			t.Errorf("%v, want one that nobody answered", m.failures)
		}
	})
}

func TestTally(t *testing.T) {
	t.Parallel()
	config := Default()
	config.Keys = 2
	tally := newTally(2, time.Second)
	at := func(ms int) time.Time { return tally.start.Add(time.Duration(ms) * time.Millisecond) }
	tally.grant(0, at(1), at(5))
	tally.grant(0, at(1), at(9))
	tally.grant(1, at(0), at(25))
	got, err := tally.spending(&config)
	if err != nil {
		t.Fatal(err)
	}
	if got.Keys[0].Tokens[0] != 2 || got.Keys[1].Tokens[2] != 1 || got.Slot != tallySlot {
		t.Errorf("%+v; want two tokens of key 0 in slot 0 and one of key 1 in slot 2", got)
	}
	if tally.longest.Load() != int64(25*time.Millisecond) || tally.tokens.Load() != 3 {
		t.Errorf("longest %d, tokens %d; want 25 ms, 3", tally.longest.Load(), tally.tokens.Load())
	}
	tally.grant(0, at(0), at(5000))
	if _, err := tally.spending(&config); err == nil {
		t.Error("a grant after the end: no error")
	}
	many := newTally(keysMost, 200*time.Hour)
	if cells := keysMost * len(many.cells[0]); cells > tallyCells+keysMost || many.slot <= 0 {
		t.Errorf("%d keys and 200 hours: %d cells of %v, at most about %d", keysMost, cells, many.slot, tallyCells)
	}
}
