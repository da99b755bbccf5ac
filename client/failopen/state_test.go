package failopen

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// start is some moment; the package does not care which.
var start = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

func mustMachine(t testing.TB, c Config) *Machine {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// seen is one observation, after milliseconds.
type seen struct {
	ms     int
	signal Signal
	change Change
	state  State
}

func TestHysteresis(t *testing.T) {
	const good, slow, leaderless, lost, gone = Answered, Slow, NoLeader, NoQuorum, Unreachable
	for _, c := range []struct {
		name string
		seen []seen
	}{
		{"A20_three_misses_in_a_row", []seen{
			{0, slow, None, Doubtful},
			{1, slow, None, Doubtful},
			{2, slow, Started, Away},
		}},
		{"A20_one_second_of_nothing_but_misses", []seen{
			{0, gone, None, Doubtful},
			{999, leaderless, None, Doubtful},
			{1000, lost, Started, Away},
		}},
		{"A20_a_slow_call_confirms_what_others_said", []seen{
			{0, lost, None, Doubtful}, {1000, slow, Started, Away},
		}},
		{"A20_two_slow_calls_are_not_enough_however_long_it_takes", []seen{
			{0, slow, None, Doubtful}, {2500, slow, None, Doubtful}, {2600, good, None, Healthy},
		}},
		{"A20_five_good_answers_in_a_row_end_it", []seen{
			{0, lost, None, Doubtful},
			{1, lost, None, Doubtful},
			{2, lost, Started, Away},
			{10, good, None, Recovering},
			{11, good, None, Recovering},
			{12, good, None, Recovering},
			{13, good, None, Recovering},
			{14, slow, None, Away},
			{20, good, None, Recovering},
			{21, good, None, Recovering},
			{22, good, None, Recovering},
			{23, good, None, Recovering},
			{24, good, Ended, Healthy},
			{25, slow, None, Doubtful},
		}},
		{"G8_an_election_alerts_nobody", []seen{
			{0, leaderless, None, Doubtful},
			{700, leaderless, None, Doubtful},
			{1400, leaderless, None, Doubtful},
			{2100, leaderless, None, Doubtful},
			{2999, leaderless, None, Doubtful},
			{3100, good, None, Healthy},
		}},
		{"G8_what_is_slow_in_an_election_is_the_elections_doing", []seen{
			{0, leaderless, None, Doubtful},
			{200, slow, None, Doubtful},
			{210, slow, None, Doubtful},
			{220, slow, None, Doubtful},
			{230, slow, None, Doubtful},
			{900, good, None, Healthy},
			{901, slow, None, Doubtful},
			{902, slow, None, Doubtful},
			{903, slow, Started, Away},
		}},
		{"G8_an_election_that_lasts_is_none", []seen{
			{0, leaderless, None, Doubtful},
			{1500, slow, None, Doubtful},
			{2999, leaderless, None, Doubtful},
			{3000, leaderless, Started, Away},
		}},
		{"G8_two_elections_on_an_idle_day", []seen{
			{0, leaderless, None, Doubtful},
			{3_600_000, leaderless, None, Doubtful},
			{3_600_100, leaderless, None, Doubtful},
			{3_600_200, good, None, Healthy},
		}},
		{"G8_silence_is_no_miss", []seen{
			{0, gone, None, Doubtful}, {60_000, gone, None, Doubtful}, {60_001, gone, Started, Away},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustMachine(t, Config{})
			for i, o := range c.seen {
				change := m.Observe(start.Add(time.Duration(o.ms)*time.Millisecond), o.signal)
				if change != o.change || m.State() != o.state {
					t.Fatalf("observation %d (%v at %d ms): %v, %v; want %v, %v",
						i, o.signal, o.ms, change, m.State(), o.change, o.state)
				}
				if want := o.state == Away || o.state == Recovering; m.Away() != want {
					t.Fatalf("observation %d: away is %v in state %v", i, m.Away(), o.state)
				}
			}
		})
	}
}

func TestFlapping(t *testing.T) {
	t.Run("A20_a_mixture_changes_nothing", func(t *testing.T) {
		m := mustMachine(t, Config{})
		for i := range 10_000 {
			now := start.Add(time.Duration(i) * 100 * time.Millisecond)
			if change := m.Observe(now, []Signal{Slow, Slow, Answered}[i%3]); change != None {
				t.Fatalf("observation %d: %v", i, change)
			}
		}
		for i := range 3 {
			m.Observe(start.Add(time.Hour+time.Duration(i)), Slow)
		}
		for i := range 10_000 {
			now := start.Add(2*time.Hour + time.Duration(i)*100*time.Millisecond)
			if change := m.Observe(now, []Signal{Answered, Answered, Answered, Answered, Slow}[i%5]); change != None {
				t.Fatalf("while away, observation %d: %v", i, change)
			}
		}
	})
}

// oracle says the same as row from the whole history since the last good answer.
type oracle struct {
	away    bool
	good    int
	history []observation
	misses  int
}

type observation struct {
	at     time.Duration
	signal Signal
}

func (o *oracle) observe(at time.Duration, s Signal) Change {
	switch {
	case o.away && s == Answered:
		if o.good++; o.good == 5 {
			*o = oracle{}
			return Ended
		}
		return None
	case o.away:
		o.good = 0
		return None
	case s == Answered:
		*o = oracle{}
		return None
	}
	o.history = append(o.history, observation{at, s})
	// Only what was not interrupted by silence counts as lasting.
	dense := len(o.history) - 1
	for dense > 0 && o.history[dense].at-o.history[dense-1].at <= 3*time.Second {
		dense--
	}
	electing, lost := time.Duration(-1), time.Duration(-1)
	for _, h := range o.history[dense:] {
		if h.signal == NoLeader && electing < 0 {
			electing = at - h.at
		}
		if (h.signal == NoQuorum || h.signal == Unreachable) && lost < 0 {
			lost = at - h.at
		}
	}
	if s == NoLeader || s == Slow && electing >= 0 {
		o.away = electing >= 3*time.Second
	} else {
		o.misses++
		o.away = o.misses >= 3 || lost >= time.Second
	}
	if o.away {
		return Started
	}
	return None
}

func TestHysteresisMatchesItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r row
		var o oracle
		at := time.Duration(0)
		last := Ended
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			at += time.Duration(rapid.SampledFrom([]int{0, 1, 100, 500, 1000, 3000, 3001}).Draw(t, "ms")) * time.Millisecond
			s := Signal(rapid.IntRange(0, int(Unreachable)).Draw(t, "signal"))
			got, want := r.observe(at, at, s), o.observe(at, s)
			if got != want || r.away() != o.away {
				t.Fatalf("at %v, %v: %v, away %v; want %v, %v", at, s, got, r.away(), want, o.away)
			}
			if got != None && got == last {
				t.Fatalf("%v twice", got)
			}
			if got != None {
				last = got
			}
		}
	})
}

func TestG8OneAlertAnIncident(t *testing.T) {
	t.Run("G8_whatever_the_interleaving", func(t *testing.T) {
		m := mustMachine(t, Config{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 2000 {
					s := Signal(i / 7 % 5)
					if i/500%2 == 1 {
						s = Answered
					}
					m.Observe(start.Add(time.Duration(i)*time.Millisecond), s)
					m.Decide(start.Add(time.Duration(i)*time.Millisecond), Request{
						Attempt: 1, Charges: []Charge{{Limit: "l", Dimension: "requests", Amount: 1}},
					})
				}
			})
		}
		all.Wait()
		if m.Summary(start).Number == 0 {
			t.Fatal("no incident: the test shows nothing")
		}
	})
	t.Run("G8_one_start_and_one_end", func(t *testing.T) {
		m := mustMachine(t, Config{})
		for incident := range 20 {
			now := start.Add(time.Duration(incident) * time.Minute)
			if started := observeTogether(m, now, NoQuorum, Started); started != 1 {
				t.Fatalf("incident %d started %d times", incident, started)
			}
			if ended := observeTogether(m, now.Add(time.Second), Answered, Ended); ended != 1 {
				t.Fatalf("incident %d ended %d times", incident, ended)
			}
		}
	})
}

// observeTogether lets eight goroutines observe the same, and counts who was
// told that it is a change.
func observeTogether(m *Machine, now time.Time, s Signal, want Change) int {
	var all sync.WaitGroup
	var mu sync.Mutex
	count := 0
	for range 8 {
		all.Go(func() {
			for range 5 {
				if m.Observe(now, s) == want {
					mu.Lock()
					count++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return count
}
