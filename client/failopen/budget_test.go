package failopen

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorlease/quorlease/fsm/retry"
)

// awayAt makes the machine away at now.
func awayAt(t testing.TB, m *Machine, now time.Time) {
	t.Helper()
	for range enterMisses {
		m.Observe(now, NoQuorum)
	}
	if !m.Away() {
		t.Fatal("not away")
	}
}

// backAt ends the incident.
func backAt(t testing.TB, m *Machine, now time.Time) {
	t.Helper()
	for range leaveGood {
		m.Observe(now, Answered)
	}
	if m.State() != Healthy {
		t.Fatal("not back")
	}
}

func one(client string, attempt uint32) Request {
	return Request{
		Client: client, Attempt: attempt,
		Charges: []Charge{{Limit: "l", Dimension: "requests", Amount: 1}},
	}
}

// admits is how many of n requests are admitted.
func admits(m *Machine, now time.Time, n int, r Request) (count int) {
	for range n {
		if m.Decide(now, r).Admit {
			count++
		}
	}
	return count
}

func TestRetryBudget(t *testing.T) {
	t.Run("A16_recovers_by_itself", func(t *testing.T) {
		m := mustMachine(t, Config{})
		awayAt(t, m, start)
		if got := admits(m, start, 100, one("a", 1)); got != 51 {
			t.Fatalf("%d retries admitted, want 51: min_requests and the one that exceeds it", got)
		}
		refused := m.Decide(start, one("a", 1))
		want := Verdict{
			Reason: RetryBudget, Charge: -1, RetryAfter: time.Minute, FreesIn: 5 * time.Minute,
		}
		if refused != want {
			t.Errorf("refused with %+v, want %+v", refused, want)
		}
		if got := admits(m, start, 100, one("b", 1)); got != 51 {
			t.Errorf("another client's: %d admitted, want 51", got)
		}
		if got := admits(m, start, 1000, one("a", 0)); got != 1000 {
			t.Errorf("first attempts: %d of 1000 admitted", got)
		}
		later := start.Add(5 * time.Minute)
		if got := admits(m, later, 100, one("a", 1)); got != 51 {
			t.Errorf("after the window has slid: %d admitted, want 51", got)
		}
	})
	t.Run("A16_attempts_start_at_0_for_every_piece_of_work", func(t *testing.T) {
		m := mustMachine(t, Config{})
		awayAt(t, m, start)
		for work := range 10 {
			for attempt := range uint32(6) {
				v := m.Decide(start, one("a", attempt))
				if v.Admit != (attempt <= 3) || v.Never != (attempt > 3) {
					t.Fatalf("work %d, attempt %d: %+v", work, attempt, v)
				}
			}
		}
	})
	t.Run("A17_whole_numbers_strictly_more", func(t *testing.T) {
		for _, c := range []struct {
			before int64
			want   int
		}{
			{79, 20}, // 19 of 98 pass, 20 of 99 are more than a fifth.
			{80, 21}, // 20 of 100 are exactly a fifth.
		} {
			m := mustMachine(t, Config{})
			m.Count(start, "a", c.before, 0)
			awayAt(t, m, start)
			if got := admits(m, start, 100, one("a", 1)); got != c.want {
				t.Errorf("%d retries admitted after %d requests, want %d", got, c.before, c.want)
			}
		}
	})
	t.Run("A17_no_retries_at_all", func(t *testing.T) {
		none := DefaultRetries()
		none.MaxRetries = 0
		m := mustMachine(t, Config{Retries: &none})
		awayAt(t, m, start)
		if got := admits(m, start, 10, one("a", 1)); got != 0 {
			t.Errorf("%d retries admitted", got)
		}
	})
	t.Run("A17_the_floor_of_few_requests", func(t *testing.T) {
		rule := retry.Rule{MaxRetries: 3, MinRequests: 3, Window: time.Minute, RetryAfter: time.Second}
		m := mustMachine(t, Config{Retries: &rule})
		awayAt(t, m, start)
		if got := admits(m, start, 10, one("a", 1)); got != 4 {
			t.Errorf("%d retries admitted with a fraction of 0, want min_requests + 1", got)
		}
	})
}

func TestRetryBudgetInEveryMode(t *testing.T) {
	whole := int64(WholePPM)
	for _, mode := range []Mode{Open, Share} {
		m := mustMachine(t, Config{Fallback: Fallback{
			Mode: mode, SharePPM: &whole, Dimensions: []Dimension{{"requests", 1_000_000, time.Second, 1_000_000}},
		}})
		awayAt(t, m, start)
		if got := admits(m, start.Add(time.Second), 100, one("a", 1)); got != 51 {
			t.Errorf("%v: %d retries admitted, want 51", mode, got)
		}
	}
	t.Run("permits while all is well", func(t *testing.T) {
		m := mustMachine(t, Config{})
		count := 0
		for range 100 {
			if m.Permit(start, "a", 1).Admit {
				count++
			}
		}
		if count != 51 {
			t.Errorf("%d permits for retries, want 51", count)
		}
		awayAt(t, m, start)
		if v := m.Decide(start, one("a", 1)); v.Reason != RetryBudget {
			t.Errorf("what was spent while healthy does not count: %+v", v)
		}
	})
}

// TestTheFloorIsTheFleets: each of those who are cut off makes its share of the retries
// that the floor allows, so that together they make no more; and nobody adds to it
// while the authority counts them.
func TestTheFloorIsTheFleets(t *testing.T) {
	floor := retry.Rule{
		MaxRetries: 3, MaxFraction: 2000, MinRequests: 50, Window: 5 * time.Minute, RetryAfter: time.Minute,
		MinRetries: 10, MinInterval: time.Second,
	}
	retrying := func(ppm *int64) *Machine {
		m := mustMachine(t, Config{Fallback: Fallback{SharePPM: ppm}})
		if err := m.Learn(start, Lesson{Client: "a", Revision: 1, Retries: &floor}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	t.Run("G12_cut_off_together", func(t *testing.T) {
		sum := 0
		for _, ppm := range []int64{300_000, 333_333, 366_667} {
			m := retrying(&ppm)
			awayAt(t, m, start)
			sum += admits(m, start, 3000, one("a", 1))
		}
		if sum > 3000 || sum < 2998 {
			t.Errorf("%d retries of three, want the floor's 3000, less what is rounded", sum)
		}
	})
	t.Run("G12_the_authority_counts", func(t *testing.T) {
		whole := int64(WholePPM)
		m := retrying(&whole)
		count := 0
		for range 1000 {
			if m.Permit(start, "a", 1).Admit {
				count++
			}
		}
		if count != 51 {
			t.Errorf("%d permits for retries while the authority answers, want 51", count)
		}
	})
	t.Run("G12_no_share_is_known", func(t *testing.T) {
		m := retrying(nil)
		awayAt(t, m, start)
		if got := admits(m, start, 1000, one("a", 1)); got != 51 {
			t.Errorf("%d retries admitted, want 51", got)
		}
	})
}

// TestWhoMayAdmit: what is refused while the authority answers says whether that may admit
// it.
func TestWhoMayAdmit(t *testing.T) {
	over := func(m *Machine, client string, retries int) Verdict {
		for range retries {
			m.Count(start, client, 1, 1)
		}
		v := m.Consider(start, client, 1)
		if permit := m.Permit(start, client, 1); permit != v {
			t.Errorf("Permit says %+v, Consider %+v", permit, v)
		}
		return v
	}
	floor := DefaultRetries()
	floor.MinRetries, floor.MinInterval = 20, time.Minute
	plain := DefaultRetries()
	for _, c := range []struct {
		name    string
		rule    *retry.Rule
		retries int
		ask     bool
	}{
		{"S1-30_nothing_is_known", nil, 51, true},
		{"S1-30_no_floor", &plain, 51, false},
		{"S1-30_below_the_floor", &floor, 99, true},
		{"S1-30_at_the_floor", &floor, 100, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustMachine(t, Config{})
			if c.rule != nil {
				if err := m.Learn(start, Lesson{Client: "a", Revision: 1, Retries: c.rule}); err != nil {
					t.Fatal(err)
				}
			}
			if v := over(m, "a", c.retries); v.Admit || v.Ask != c.ask {
				t.Errorf("%+v, want a refusal with Ask %v", v, c.ask)
			}
			awayAt(t, m, start)
			if v := m.Consider(start, "a", 1); v.Admit || v.Ask {
				t.Errorf("%+v, want a refusal: nobody answers", v)
			}
		})
	}
	t.Run("G10_the_rest", func(t *testing.T) {
		m := mustMachine(t, Config{ClientsMax: 1})
		m.Count(start, "first", 1, 0)
		if err := m.Learn(start, Lesson{Client: "a", Revision: 1, Retries: &plain}); err != nil {
			t.Fatal(err)
		}
		if v := over(m, "a", 51); v.Admit || !v.Ask {
			t.Errorf("%+v, want Ask: the budget is not this client's own", v)
		}
	})
}

func TestLearntBudget(t *testing.T) {
	t.Run("a client without one", func(t *testing.T) {
		m := mustMachine(t, Config{})
		if err := m.Learn(start, Lesson{Client: "a", Revision: 1}); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if v := m.Permit(start, "a", 9); !v.Admit {
				t.Fatalf("the authority answers and gave no budget, but %+v", v)
			}
		}
		awayAt(t, m, start)
		if v := m.Decide(start, one("a", 1)); v.Reason != RetryBudget {
			t.Errorf("a storm because the authority is away: %+v", v)
		}
	})
	t.Run("another window gives nothing back", func(t *testing.T) {
		m := mustMachine(t, Config{})
		awayAt(t, m, start)
		admits(m, start, 100, one("a", 1))
		rule := DefaultRetries()
		rule.Window = time.Hour
		if err := m.Learn(start, Lesson{Client: "a", Retries: &rule}); err != nil {
			t.Fatal(err)
		}
		if got := admits(m, start.Add(time.Minute), 100, one("a", 1)); got != 0 {
			t.Errorf("%d retries admitted", got)
		}
	})
	t.Run("G10_clients_beyond_the_most_share_one", func(t *testing.T) {
		m := mustMachine(t, Config{ClientsMax: 2})
		awayAt(t, m, start)
		total := 0
		for i := range 100 {
			total += admits(m, start, 10, one(fmt.Sprint("client ", i), 1))
		}
		if total != 10+10+51 {
			t.Errorf("%d retries of 100 clients admitted, want two of 10 and 51 for the rest", total)
		}
		if got := len(m.mu.budgets.clients); got != 2 {
			t.Errorf("%d budgets", got)
		}
		later := start.Add(5 * time.Minute)
		if got := admits(m, later, 10, one("new", 1)); got != 10 || len(m.mu.budgets.clients) > 2 {
			t.Errorf("idle clients make no place: %d admitted, %d budgets", got, len(m.mu.budgets.clients))
		}
	})
}
