package load

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
	goleak.VerifyTestMain(m)
}

// slow is a server that answers in a millisecond, but hangs for a second after the
// first one. It grants and denies in turn.
type slow struct {
	asked  int
	failed bool
	used   time.Duration
}

func (s *slow) Asker(int) (Asker, error) { return s, nil }

func (s *slow) CPU() (time.Duration, error) {
	s.used += time.Second
	return s.used, nil
}

func (s *slow) Ask(ctx context.Context, _ int) (Answer, error) {
	s.asked++
	took := time.Millisecond
	if s.asked == 100 {
		took = time.Second
	}
	if err := sleep(ctx, took); err != nil {
		return Answer{}, err
	}
	if s.failed {
		return Answer{}, errors.New("away")
	}
	return Answer{Granted: s.asked%2 == 0, Local: s.asked%10 == 0, Escrow: s.asked%4 == 0}, nil
}

// TestTimeIsKept: an open loop in real time leaves nothing behind, the beat of its timers
// included, and begins what it meant to.
func TestTimeIsKept(t *testing.T) {
	config := Config{
		Callers: 4, Keys: 1, Distribution: stat.Uniform, Arrivals: stat.Even, Rate: 1000, Timeout: time.Second,
		Seed: 1, Length: SlotLength, OnTime: KeepTime, Reason: func(err error) string { return err.Error() },
	}
	m, err := Run(t.Context(), &config, atOnce{})
	if err != nil {
		t.Fatal(err)
	}
	if begun := m.Granted + m.Backlog; begun == 0 || begun > 101 {
		t.Errorf("%d were begun or due, want 100", begun)
	}
}

// atOnce grants without taking time.
type atOnce struct{}

func (a atOnce) Asker(int) (Asker, error)               { return a, nil }
func (atOnce) CPU() (time.Duration, error)              { return 0, ErrUnknown }
func (atOnce) Ask(context.Context, int) (Answer, error) { return Answer{Granted: true}, nil }

// loaded is one round of one caller.
func loaded(t *testing.T, change func(*Config, *slow)) *Measured {
	t.Helper()
	config := Config{
		Callers: 1, Keys: 100, Distribution: stat.Zipf, Arrivals: stat.Even, Timeout: 2 * time.Second, Seed: 1,
		Length: 3 * time.Second, Reason: func(err error) string { return err.Error() },
	}
	s := &slow{}
	change(&config, s)
	m, err := Run(t.Context(), &config, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// longerThan is how many answers took longer.
func longerThan(m *Measured, d time.Duration) (n int64) {
	for percent := 0.0; percent <= 100; percent += 0.01 {
		if m.Latencies.At(percent) > d {
			return int64(float64(m.Latencies.Count()) * (100 - percent) / 100)
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
		if got := m.Granted + m.Denied; got < 295 || got > 300 {
			t.Errorf("%d answers in 3 s at 100/s, want about 299", got)
		}
		if got := longerThan(m, 500*time.Millisecond); got < 45 || got > 60 {
			t.Errorf("%d answers took longer than 500 ms, want about 55", got)
		}
		if got := m.Latencies.Max(); got < 990*time.Millisecond || got > 1010*time.Millisecond {
			t.Errorf("the longest took %v, want 1s", got)
		}
		if m.Backlog > 2 || m.Failed != 0 {
			t.Errorf("backlog %d, failed %d; want nothing left", m.Backlog, m.Failed)
		}
	})
}

func TestClosedLoopWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := loaded(t, func(*Config, *slow) {})
		if got := m.Granted + m.Denied; got < 1990 || got > 2001 {
			t.Errorf("%d answers in 3 s with one of a second, want about 2000", got)
		}
		if got := longerThan(m, 500*time.Millisecond); got > 1 || m.Latencies.Max() < time.Second {
			t.Errorf("%d answers took longer than 500 ms, the longest %v; want one of 1s", got, m.Latencies.Max())
		}
		if m.Local < 195 || m.Local > 201 || m.Escrow < 495 || m.Escrow > 501 {
			t.Errorf("%d local answers and %d from escrow, want about 200 and 500", m.Local, m.Escrow)
		}
		if m.CPU == nil || *m.CPU != time.Second || len(m.PerCaller) != 1 || m.PerCaller[0] != m.Granted {
			t.Errorf("processor time %v, granted to each %v", m.CPU, m.PerCaller)
		}
		var granted int64
		for i := range m.Slots {
			granted += m.Slots[i].Granted.Load()
		}
		if len(m.Slots) != 30 || granted != m.Granted {
			t.Errorf("%d slots with %d grants, want 30 with %d", len(m.Slots), granted, m.Granted)
		}
	})
}

func TestTooSlowForItsSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// 2000 a second of a server that does 1000: the rest is a backlog.
		m := loaded(t, func(c *Config, s *slow) { c.Rate, s.asked = 2000, 100 })
		if m.Backlog < 2950 || m.Backlog > 3050 {
			t.Errorf("backlog %d, want about 3000", m.Backlog)
		}
		if got := m.Latencies.Max(); got < 1400*time.Millisecond {
			t.Errorf("the longest took %v, want about 1.5s", got)
		}
	})
}

func TestFailuresAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := loaded(t, func(_ *Config, s *slow) { s.failed, s.asked = true, 100 })
		if m.Failed < 490 || m.Failed > 501 || m.Failures["away"] != m.Failed || m.Latencies.Count() != 0 {
			t.Errorf("failed %d, %v, with %d latencies; want about 500 and none", m.Failed, m.Failures, m.Latencies.Count())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// One hangs beyond the end and beyond its time.
		m := loaded(t, func(c *Config, s *slow) {
			c.Length, c.Timeout, s.asked = 800*time.Millisecond, 500*time.Millisecond, 99
		})
		if m.Failures["UNANSWERED"] != 1 || m.Failed != 1 {
			t.Errorf("%v, want one that nobody answered", m.Failures)
		}
	})
}
