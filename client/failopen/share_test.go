package failopen

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// quarter is the limit of A20: 100/1s, burst 100, a share of 25 %.
func quarter() Fallback {
	ppm := int64(250_000)
	return Fallback{
		Limit: "l", Mode: Share, SharePPM: &ppm, Dimensions: []Dimension{{"requests", 100, time.Second, 100}},
	}
}

func ask(n int64) Request {
	return Request{Client: "a", Charges: []Charge{{Limit: "l", Dimension: "requests", Amount: n}}}
}

func TestA20Fleet(t *testing.T) {
	t.Run("A20_four_clients_cut_off_for_a_minute", func(t *testing.T) {
		const clients, seconds, offered = 4, 60, 1000
		sum := int64(0)
		for client := range clients {
			m := mustMachine(t, Config{Static: []Fallback{quarter()}})
			at := start.Add(time.Duration(client) * 77 * time.Millisecond)
			awayAt(t, m, at)
			admitted := int64(0)
			for i := range seconds*offered + 1 {
				now := at.Add(time.Duration(i) * time.Second / offered)
				if m.Decide(now, ask(1)).Admit {
					admitted++
				}
			}
			if admitted > 25+25*seconds || admitted < 25*seconds-1 {
				t.Errorf("client %d: admitted %d, want at most 1525 and about 25 a second", client, admitted)
			}
			sum += admitted
			end := at.Add(seconds * time.Second)
			backAt(t, m, end)
			got := m.Summary(end.Add(time.Hour))
			want := Spent{
				Limit: "l", Dimension: "requests", Mode: Share, Tokens: admitted,
				Bounded: true, Worst: 1525, Fleet: 6100, Keys: 1,
			}
			if len(got.Spent) != 1 || got.Spent[0] != want {
				t.Errorf("client %d publishes %+v, want %+v", client, got.Spent, want)
			}
			if got.Admitted != admitted || got.Refused != seconds*offered+1-admitted {
				t.Errorf("client %d: %d admitted and %d refused, want %d of %d",
					client, got.Admitted, got.Refused, admitted, seconds*offered+1)
			}
		}
		if sum > 6100 {
			t.Errorf("the fleet admitted %d, want at most 6100", sum)
		}
	})
}

func TestShareStartsEmpty(t *testing.T) {
	t.Run("T34_empty_at_the_start", func(t *testing.T) {
		m := mustMachine(t, Config{Static: []Fallback{quarter()}})
		awayAt(t, m, start)
		want := Verdict{Reason: Rate, RetryAfter: 40 * time.Millisecond}
		if got := m.Decide(start, ask(1)); got != want {
			t.Fatalf("at the start: %+v, want %+v", got, want)
		}
		if got := m.Decide(start.Add(39*time.Millisecond), ask(1)); got.Admit {
			t.Error("admitted before a token was earned")
		}
		if got := m.Decide(start.Add(40*time.Millisecond), ask(1)); !got.Admit {
			t.Errorf("a caller who waited as told: %+v", got)
		}
		if got := m.Decide(start.Add(time.Hour), ask(26)); got.Reason != ExceedsShare {
			t.Errorf("more than the share of the burst: %+v", got)
		}
		if got := m.Decide(start.Add(time.Hour), ask(25)); !got.Admit {
			t.Errorf("all of the share of the burst: %+v", got)
		}
	})
	t.Run("T34_a_second_incident_is_no_gift", func(t *testing.T) {
		m := mustMachine(t, Config{Static: []Fallback{quarter()}})
		admitted, away := 0, 10*time.Millisecond
		for i := range 1000 {
			now := start.Add(time.Duration(i) * 20 * time.Millisecond)
			awayAt(t, m, now)
			admitted += admits(m, now.Add(away), 10, ask(1))
			backAt(t, m, now.Add(away))
		}
		if admitted != 0 {
			t.Errorf("%d admitted in incidents that are all shorter than a token takes", admitted)
		}
		later := start.Add(time.Hour)
		awayAt(t, m, later)
		if got := admits(m, later.Add(time.Minute), 1, ask(1)); got != 1 {
			t.Fatal("refused its share")
		}
		later = later.Add(time.Minute)
		backAt(t, m, later)
		awayAt(t, m, later)
		if got := admits(m, later, 100, ask(1)); got != 0 {
			t.Errorf("%d admitted of what the incident before had earned", got)
		}
	})
	t.Run("T34_nothing_while_the_authority_is_there", func(t *testing.T) {
		m := mustMachine(t, Config{Static: []Fallback{quarter()}})
		m.Decide(start, ask(1))
		got := m.Decide(start.Add(time.Hour), ask(1))
		if want := (Verdict{Reason: Rate, RetryAfter: awayFor}); got != want {
			t.Errorf("a slow call: %+v, want %+v", got, want)
		}
		if m.State() != Healthy {
			t.Errorf("deciding changed the state to %v", m.State())
		}
	})
}

func TestT52Absent(t *testing.T) {
	t.Run("T52_absent_is_not_zero", func(t *testing.T) {
		none, tenth := int64(0), int64(100_000)
		dims := []Dimension{{"requests", 100, time.Second, 100}}
		for _, c := range []struct {
			name   string
			learnt *int64
			want   int
		}{
			{"a share of 0 is none", &none, 0},
			{"no share is that of the configuration", nil, 10},
		} {
			m := mustMachine(t, Config{Fallback: Fallback{SharePPM: &tenth}})
			lesson := Lesson{Limits: []Fallback{{Limit: "l", Mode: Share, SharePPM: c.learnt, Dimensions: dims}}}
			if err := m.Learn(start, lesson); err != nil {
				t.Fatal(err)
			}
			awayAt(t, m, start)
			later := start.Add(time.Minute)
			if got := admits(m, later, 100, ask(1)); got != c.want {
				t.Errorf("%s: %d admitted, want %d", c.name, got, c.want)
			}
			if got := m.Decide(later, ask(1)); c.want == 0 && got.Reason != NoShare {
				t.Errorf("%s: refused with %+v", c.name, got)
			}
		}
	})
	t.Run("T52_a_static_share_of_the_limit_comes_first", func(t *testing.T) {
		tenth := int64(100_000)
		m := mustMachine(t, Config{Fallback: Fallback{SharePPM: &tenth}, Static: []Fallback{quarter()}})
		unsaid := quarter()
		unsaid.SharePPM = nil
		if err := m.Learn(start, Lesson{Limits: []Fallback{unsaid}}); err != nil {
			t.Fatal(err)
		}
		awayAt(t, m, start)
		if got := admits(m, start.Add(time.Minute), 100, ask(1)); got != 25 {
			t.Errorf("%d admitted, want 25", got)
		}
	})
	t.Run("T52_nothing_was_ever_said", func(t *testing.T) {
		m := mustMachine(t, Config{Fallback: Fallback{Mode: Share}})
		awayAt(t, m, start)
		if got := m.Decide(start.Add(time.Hour), ask(1)); got.Reason != NoShare || got.RetryAfter <= 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestShareNeverAboveItsPart compares the arithmetic with exact fractions.
func TestShareNeverAboveItsPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Dimension{
			Amount:   rapid.Int64Range(0, 1<<rapid.IntRange(0, 53).Draw(t, "bits")).Draw(t, "amount"),
			Interval: time.Duration(rapid.Int64Range(1, 1<<rapid.IntRange(0, 56).Draw(t, "bits")).Draw(t, "interval")),
			Burst:    rapid.Int64Range(0, 1<<rapid.IntRange(0, 53).Draw(t, "bits")).Draw(t, "burst"),
		}
		whole := bucket.Spec{Amount: d.Amount, Interval: d.Interval, Burst: d.Burst, Target: bucket.Whole}
		if _, err := bucket.NewShape(whole); err != nil {
			// The authority refuses such a limit when it is written.
			return
		}
		ppm := rapid.Int64Range(0, WholePPM).Draw(t, "ppm")
		shape, err := shareOf(d, ppm)
		if err != nil {
			t.Fatal(err)
		}
		if shape == nil {
			if ppm > 0 && d.Amount > 0 && d.Burst > 0 {
				t.Fatal("a share of something is nothing")
			}
			return
		}
		part := big.NewRat(d.Amount, int64(d.Interval))
		part.Mul(part, big.NewRat(ppm, WholePPM))
		span := rapid.Int64Range(int64(time.Second), math.MaxInt64).Draw(t, "span")
		exact := new(big.Rat).Mul(part, big.NewRat(span, 1))
		got := shape.TokensIn(time.Duration(span))
		if got < math.MaxInt64 && new(big.Rat).SetInt64(got).Cmp(exact) > 0 {
			t.Fatalf("%d tokens, exactly %v", got, exact.FloatString(3))
		}
		if want := max(1, mulDiv(d.Burst, ppm, WholePPM)); shape.Burst() != want {
			t.Fatalf("burst %d, want %d", shape.Burst(), want)
		}
	})
}

// TestShareIsALowerRate has a rate that 63 bits can't hold with its burst: over a
// century the next higher one would give a token too many.
func TestShareIsALowerRate(t *testing.T) {
	d := Dimension{"", 333, time.Minute, 1_000_000}
	shape, err := shareOf(d, 333_333)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := exactRate(d, 333_333, shape.Burst()); ok {
		t.Fatal("it is exact: the test shows nothing")
	}
	// 110999889 tokens in 60000000 s are exact.
	const periods = 150
	if got := shape.TokensIn(periods * 60_000_000 * time.Second); got >= periods*110_999_889 {
		t.Errorf("%d tokens, want a little less than %d", got, int64(periods*110_999_889))
	}
}

func TestShareIsExact(t *testing.T) {
	for _, c := range []struct {
		d         Dimension
		ppm       int64
		in        time.Duration
		want, low int64
	}{
		{Dimension{"", 100, time.Second, 100}, 250_000, time.Minute, 1500, 1500},
		{Dimension{"", 7, 24 * time.Hour, 7}, 333_333, 1000 * 24 * time.Hour, 2333, 2333},
		{Dimension{"", 1_000_000_000, time.Second, 1 << 40}, 300_000, time.Hour, 1_080_000_000_000, 1_079_999_990_000},
		{Dimension{"", 333, time.Minute, 1_000_000}, 333_333, 1000 * time.Hour, 6_659_993, 6_659_992},
	} {
		t.Run(fmt.Sprintf("%d_in_%v_at_%d_ppm", c.d.Amount, c.d.Interval, c.ppm), func(t *testing.T) {
			shape, err := shareOf(c.d, c.ppm)
			if err != nil {
				t.Fatal(err)
			}
			if got := shape.TokensIn(c.in); got > c.want || got < c.low {
				t.Errorf("%d tokens in %v, want %d to %d", got, c.in, c.low, c.want)
			}
		})
	}
}
