package failopen

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestT35Reports(t *testing.T) {
	admit := func(m *Machine, key string, n int64) {
		m.Decide(start, Request{Charges: []Charge{{Limit: "l", Key: key, Dimension: "requests", Amount: n}}})
	}
	t.Run("T35_cumulative", func(t *testing.T) {
		m := mustMachine(t, Config{})
		admit(m, "a", 3)
		admit(m, "b", 1)
		admit(m, "a", 2)
		first := m.Pending(64)
		want := []Account{
			{Limit: "l", Key: "a", Dimension: "requests", Tokens: 5},
			{Limit: "l", Key: "b", Dimension: "requests", Tokens: 1},
		}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Fatalf("first report (-want +got):\n%s", diff)
		}
		// Nobody said that it was booked: it is asked for again, with what came since.
		admit(m, "a", 1)
		if got := m.Pending(64); len(got) != 2 || got[0].Tokens != 6 {
			t.Errorf("repeated report %+v", got)
		}
		m.Booked(first)
		second := m.Pending(64)
		if len(second) != 1 || second[0].Key != "a" || second[0].Tokens != 6 {
			t.Errorf("second report %+v, want a with 6", second)
		}
		m.Booked(second)
		m.Booked(first)
		if got := m.Pending(64); len(got) != 0 {
			t.Errorf("an old answer brings back %+v", got)
		}
		admit(m, "b", 1)
		if got := m.Pending(64); len(got) != 1 || got[0].Tokens != 2 {
			t.Errorf("%+v, want b with all of its 2", got)
		}
	})
	t.Run("T35_starting_over_once_all_is_booked", func(t *testing.T) {
		m := mustMachine(t, Config{Static: []Fallback{quarter()}})
		awayAt(t, m, start)
		now := start.Add(time.Second)
		if got := admits(m, now, 100, ask(1)); got != 25 {
			t.Fatalf("%d admitted", got)
		}
		m.Booked(m.Pending(64))
		if m.StartOver() {
			t.Error("started over while away: the bucket would come back full")
		}
		backAt(t, m, now)
		m.Decide(now, Request{Charges: []Charge{{Limit: "open", Dimension: "requests", Amount: 1}}})
		if m.StartOver() {
			t.Error("started over though not all is booked")
		}
		m.Booked(m.Pending(64))
		if !m.StartOver() || len(m.Admitted()) != 0 || len(m.mu.accounts.paced) != 0 {
			t.Errorf("not started over: %+v", m.Admitted())
		}
		if got := m.Totals(); len(got) != 2 || got[0].Tokens != 25 || got[1].Tokens != 1 {
			t.Errorf("totals %+v, want those of the machine's whole life", got)
		}
		if got := m.Summary(now).Spent; len(got) != 1 || got[0].Tokens != 25 || got[0].Worst != 50 {
			t.Errorf("the last incident is %+v", got)
		}
		awayAt(t, m, now)
		if got := admits(m, now.Add(time.Second), 100, ask(1)); got != 25 {
			t.Errorf("%d admitted afterwards", got)
		}
		if got := m.Pending(64); len(got) != 1 || got[0].Tokens != 25 {
			t.Errorf("counts begin at %+v", got)
		}
	})
	t.Run("T35_every_account_has_its_turn", func(t *testing.T) {
		m := mustMachine(t, Config{})
		for i := range 1000 {
			admit(m, fmt.Sprint(i), 1)
		}
		reported := make(map[string]bool)
		for range 16 {
			some := m.Pending(64)
			for _, one := range some {
				reported[one.Key] = true
			}
			m.Booked(some)
		}
		if len(reported) != 1000 || len(m.Pending(64)) != 0 {
			t.Errorf("%d of 1000 accounts in 16 reports, %d left", len(reported), len(m.Pending(64)))
		}
	})
}

// TestReportsTellEverything loses, repeats and reorders answers: in the end what
// was booked is what was admitted.
func TestReportsTellEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mustMachineRapid(t, Config{})
		booked := make(map[string]int64)
		admitted := make(map[string]int64)
		var answers [][]Account
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				key, n := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key"), rapid.Int64Range(1, 5).Draw(t, "n")
				m.Decide(start, Request{Charges: []Charge{{Limit: "l", Key: key, Dimension: "d", Amount: n}}})
				admitted[key] += n
			case 2:
				report := m.Pending(rapid.IntRange(1, 3).Draw(t, "most"))
				for _, one := range report {
					booked[one.Key] = max(booked[one.Key], one.Tokens)
				}
				answers = append(answers, report)
			case 3:
				if len(answers) > 0 {
					m.Booked(rapid.SampledFrom(answers).Draw(t, "answer"))
				}
			}
		}
		for rounds := 0; ; rounds++ {
			report := m.Pending(2)
			if len(report) == 0 {
				break
			}
			if rounds > 10 {
				t.Fatalf("still pending: %+v", report)
			}
			for _, one := range report {
				booked[one.Key] = max(booked[one.Key], one.Tokens)
			}
			m.Booked(report)
		}
		if diff := cmp.Diff(admitted, booked); diff != "" {
			t.Fatalf("booked (-admitted +booked):\n%s", diff)
		}
	})
}

func mustMachineRapid(t *rapid.T, c Config) *Machine {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestKnown(t *testing.T) {
	m := mustMachine(t, Config{Static: []Fallback{quarter()}})
	charges := []Charge{{Limit: "l"}, {Limit: "other"}}
	learn := func(revision uint64, limits ...string) {
		t.Helper()
		l := Lesson{Client: "a", Revision: revision}
		for _, name := range limits {
			l.Limits = append(l.Limits, Fallback{Limit: name})
		}
		if err := m.Learn(start.Add(time.Second), l); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want uint64, wantOK bool) {
		t.Helper()
		if got, ok := m.Known("a", charges); got != want || ok != wantOK {
			t.Errorf("Known = %d, %v; want %d, %v", got, ok, want, wantOK)
		}
	}
	expect(0, false)
	learn(7, "l")
	expect(0, false)
	learn(8, "other")
	expect(7, true)
	learn(8, "l")
	expect(8, true)
	if _, ok := m.Known("b", charges); ok {
		t.Error("another client's budget was never learnt")
	}
	learn(3, "l", "other")
	expect(3, true)
}
