package clock

import (
	"testing"
	"time"
)

// machine is a clock whose three sources the test moves.
type machine struct {
	*Clock
	now  time.Time
	boot time.Duration
}

func newMachine(hasBoot bool) *machine {
	m := &machine{Clock: New(), boot: time.Hour}
	m.now = m.base
	m.Clock.boot = func() (time.Duration, bool) { return m.boot, hasBoot }
	m.bootBase = m.boot
	return m
}

// run passes time on every clock.
func (m *machine) run(d time.Duration) {
	m.now = m.now.Add(d)
	m.boot += d
}

// stepWall moves what the wall clock shows, by moving where it began.
func (m *machine) stepWall(d time.Duration) { m.wall -= int64(d) }

func (m *machine) want(t *testing.T, want time.Duration) {
	t.Helper()
	if got := m.at(m.now); got != want {
		t.Errorf("clock shows %s, want %s", got, want)
	}
}

func TestSuspension(t *testing.T) {
	t.Run("T5_a_suspended_machine_wakes_with_old_leases", func(t *testing.T) {
		m := newMachine(true)
		m.run(time.Second)
		m.want(t, time.Second)
		m.boot += time.Minute
		m.stepWall(time.Minute)
		m.want(t, time.Minute+time.Second)
		m.run(time.Second)
		m.want(t, time.Minute+2*time.Second)
	})
	t.Run("a_wall_clock_that_is_set_changes_nothing", func(t *testing.T) {
		m := newMachine(true)
		m.stepWall(time.Hour)
		m.want(t, 0)
		m.run(time.Second)
		m.stepWall(-2 * time.Hour)
		m.want(t, time.Second)
	})
	t.Run("T5_without_a_boot_clock_a_step_counts_as_a_suspension", func(t *testing.T) {
		m := newMachine(false)
		m.stepWall(time.Minute)
		m.want(t, time.Minute)
		m.stepWall(-time.Minute)
		m.want(t, time.Minute)
	})
}

// TestSuspensionIsSeenSoon: the wall clock is not read each time, but as soon as a
// suspension can have been.
func TestSuspensionIsSeenSoon(t *testing.T) {
	t.Run("T5", func(t *testing.T) {
		c, base := New(), time.Hour
		c.bootBase = base
		c.boot = func() (time.Duration, bool) { return base + time.Minute + time.Since(c.base), true }
		c.Now()
		c.wall -= int64(time.Minute)
		for began := time.Now(); time.Since(began) <= unchecked; {
			c.Now()
		}
		if now := c.Now(); now < time.Minute {
			t.Errorf("the clock shows %s after a minute's suspension", now)
		}
	})
}

func TestNow(t *testing.T) {
	c := New()
	before := c.Now()
	if after := c.Now(); after < before || after > time.Minute {
		t.Errorf("the clock showed %s and then %s", before, after)
	}
	if n := testing.AllocsPerRun(100, func() { c.Now() }); n != 0 {
		t.Errorf("Now allocates %v times, want 0", n)
	}
}
