package failopen

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSummary(t *testing.T) {
	m := mustMachine(t, Config{Static: []Fallback{quarter(), {Limit: "closed", Mode: Closed}}})
	if got := m.Summary(start); got.Number != 0 || got.Spent != nil {
		t.Errorf("before any incident: %+v", got)
	}
	open := Request{Charges: []Charge{{Limit: "open", Key: "k", Dimension: "tokens", Amount: 500}}}
	m.Decide(start, open)
	m.Observe(start, Slow)
	m.Observe(start.Add(time.Second), Slow)
	m.Observe(start.Add(2*time.Second), Unreachable)
	began := start.Add(2 * time.Second)
	now := began.Add(time.Second)
	m.Decide(now, open)
	m.Decide(now, open)
	m.Decide(now, ask(10))
	m.Decide(now, Request{Charges: []Charge{{Limit: "closed", Dimension: "requests", Amount: 1}}})
	want := Summary{
		Number: 1, Started: began, Cause: Unreachable, Admitted: 3, Refused: 1,
		Spent: []Spent{
			{
				Limit: "l", Dimension: "requests", Mode: Share, Tokens: 10, Bounded: true, Worst: 50, Fleet: 200, Keys: 1,
			},
			{Limit: "open", Dimension: "tokens", Mode: Open, Tokens: 1000},
		},
	}
	if diff := cmp.Diff(want, m.Summary(now)); diff != "" {
		t.Errorf("while it lasts (-want +got):\n%s", diff)
	}
	backAt(t, m, now)
	want.Ended = now
	if diff := cmp.Diff(want, m.Summary(now.Add(time.Hour))); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
	m.Decide(now, open)
	if diff := cmp.Diff(want, m.Summary(now.Add(time.Hour))); diff != "" {
		t.Errorf("a slow call after it is not its doing (-want +got):\n%s", diff)
	}
	totals := []Total{{"l", "requests", 10}, {"open", "tokens", 2000}}
	if diff := cmp.Diff(totals, m.Totals()); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	awayAt(t, m, now.Add(2*time.Hour))
	if got := m.Summary(now.Add(2 * time.Hour)); got.Number != 2 || got.Admitted != 0 || got.Spent != nil {
		t.Errorf("the next one begins with %+v", got)
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]interface{ String() string }{
		"no quorum": NoQuorum, "unreachable": Unreachable, "recovering": Recovering, "ended": Ended,
		"share": Share, "closed": Refused, "retry budget": RetryBudget,
	} {
		if got.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if got := Signal(99).String(); got != "unknown" {
		t.Error(got)
	}
}
