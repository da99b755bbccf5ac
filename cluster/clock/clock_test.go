package clock

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// member is a node as far as its clock goes: an own clock that may be off and
// drift, and how much of the log it has applied.
type member struct {
	clock *Clock
	// ppm is how much faster than real time its clock goes.
	ppm     int64
	offset  time.Duration
	applied int
}

// entry is one committed stamp and when it was proposed.
type entry struct {
	now  bucket.Instant
	real time.Duration
}

// timeline is a cluster whose real time the test moves by hand.
type timeline struct {
	real    time.Duration
	members []*member
	log     []entry
	leader  int
}

// newTimeline starts a cluster that nobody leads. The own clocks begin an hour
// apart: no two are ever compared.
func newTimeline(ppm ...int64) *timeline {
	w := &timeline{leader: -1}
	for i, p := range ppm {
		m := &member{ppm: p, offset: time.Duration(i) * time.Hour}
		m.clock = New(func() time.Duration {
			return m.offset + w.real + w.real*time.Duration(m.ppm)/1_000_000
		})
		w.members = append(w.members, m)
	}
	return w
}

// elect makes member i the leader: it applies what was committed, which is what
// its Barrier waits for, and counts on alone.
func (w *timeline) elect(i int) {
	if w.leader >= 0 {
		w.members[w.leader].clock.Follow()
	}
	w.leader = i
	w.catchUp(i)
	w.members[i].clock.Lead()
}

// propose commits an entry with the leader's stamp. Members apply it when they
// catch up.
func (w *timeline) propose() {
	now := w.members[w.leader].clock.Estimate()
	if len(w.log) > 0 {
		// What the state machine does.
		now = max(now, w.log[len(w.log)-1].now)
	}
	w.log = append(w.log, entry{now: now, real: w.real})
}

func (w *timeline) catchUp(i int) {
	m := w.members[i]
	for ; m.applied < len(w.log); m.applied++ {
		m.clock.SetApplied(w.log[m.applied].now)
	}
}

// tick lets d of real time pass with an entry each second, applied by all.
func (w *timeline) tick(d time.Duration) {
	for end := w.real + d; w.real < end; w.real += time.Second {
		w.propose()
		for i := range w.members {
			w.catchUp(i)
		}
	}
}

// restart gives member i a fresh process: it has forgotten what its clock
// showed, and replays the log.
func (w *timeline) restart(i int) {
	m := w.members[i]
	m.applied = 0
	m.clock = New(m.clock.elapsed)
	w.catchUp(i)
}

func (w *timeline) now() bucket.Instant { return w.log[len(w.log)-1].now }

func (w *timeline) require(t *testing.T, low, high time.Duration) {
	t.Helper()
	if now := time.Duration(w.now()); now < low || now > high {
		t.Fatalf("authority time is %s after %s, want %s to %s", now, w.real, low, high)
	}
}

func TestClockTraps(t *testing.T) {
	t.Parallel()
	t.Run("T1_alternating_leaders_do_not_run_ahead", func(t *testing.T) {
		w := newTimeline(0, 0)
		for i := range 60 {
			w.elect(i % 2)
			w.tick(time.Second)
		}
		w.propose()
		// Each election may cost the age of the last entry, and gives nothing.
		w.require(t, 0, 60*time.Second)
	})
	t.Run("T2_an_election_costs_no_more_than_the_last_entry's_age", func(t *testing.T) {
		w := newTimeline(0, 0, 0)
		w.elect(0)
		for i, until := range []time.Duration{4, 6, 8, 10} {
			w.tick(until*time.Second - w.real)
			w.elect((i + 1) % 3)
		}
		w.propose()
		w.require(t, 10*time.Second-3*time.Second, 10*time.Second)
		w.tick(time.Hour)
		w.elect(1)
		w.propose()
		w.require(t, time.Hour, w.real)
	})
	t.Run("T3_nothing_is_stamped_before_the_barrier", func(t *testing.T) {
		w := newTimeline(0, 0)
		w.elect(0)
		w.tick(10 * time.Second)
		// Member 1 lags: what it has applied is old, and its estimate with it.
		w.members[1].applied -= 9
		w.members[1].clock.SetApplied(0)
		w.elect(1)
		w.propose()
		w.require(t, 9*time.Second, 10*time.Second)
	})
	t.Run("T37_a_follower_anchors_to_what_it_applied", func(t *testing.T) {
		w := newTimeline(0, 0, 0)
		w.elect(0)
		w.propose()
		for i := range w.members {
			w.catchUp(i)
		}
		// An idle hour without a tick: a leader that hangs.
		w.real += time.Hour
		w.restart(1)
		w.elect(1)
		w.propose()
		w.require(t, 0, time.Second)
		// Member 2 counted through the hour, and has to step back.
		w.catchUp(2)
		w.real += 5 * time.Second
		w.elect(2)
		w.propose()
		w.require(t, 5*time.Second, 6*time.Second)
	})
	t.Run("T38_a_fast_follower_saves_up_nothing", func(t *testing.T) {
		w := newTimeline(0, 200)
		w.elect(0)
		w.tick(24 * time.Hour)
		w.elect(1)
		w.propose()
		w.require(t, 24*time.Hour-time.Second, 24*time.Hour+time.Millisecond)
	})
	t.Run("T39_a_leader_counts_on_alone", func(t *testing.T) {
		w := newTimeline(0)
		w.elect(0)
		// An entry is always in flight for 5 ms and applied at its end.
		for range 1000 {
			w.propose()
			w.real += 5 * time.Millisecond
			w.catchUp(0)
		}
		w.propose()
		w.require(t, 5*time.Second, 5*time.Second)
	})
}

// Over every interval the authority clock is never faster than real time, but
// for the drift of the machines, whoever leads and however members lag and
// restart.
func TestG1ClockIsNeverFasterThanRealTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const ppmMax = 200
		w := newTimeline(
			rapid.Int64Range(-ppmMax, ppmMax).Draw(t, "drift"),
			rapid.Int64Range(-ppmMax, ppmMax).Draw(t, "drift"),
			rapid.Int64Range(-ppmMax, ppmMax).Draw(t, "drift"))
		w.elect(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "member")
			w.real += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "passes"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				w.elect(i)
			case 1:
				w.catchUp(i)
			case 2:
				if i != w.leader {
					w.restart(i)
				}
			default:
				w.propose()
			}
		}
		for i, a := range w.log {
			for _, b := range w.log[i:] {
				real := b.real - a.real
				most := real + real*ppmMax/1_000_000 + time.Nanosecond
				if passed := time.Duration(b.now - a.now); passed > most || passed < 0 {
					t.Fatalf("authority time moved by %s in %s", passed, real)
				}
			}
		}
	})
}
