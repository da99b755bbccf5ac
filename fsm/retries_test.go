package fsm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	counted "github.com/quorlease/quorlease/fsm/tally"
)

// standardBudget is the one of the incident report, for every client.
func standardBudget() *logv1.RetryBudget {
	return &logv1.RetryBudget{
		Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
		Window: int64(5 * time.Minute), RetryAfter: int64(time.Minute),
		WarnFraction: 1000, WarnFor: int64(2 * time.Minute),
	}
}

func budgets(list ...*logv1.RetryBudget) *logv1.Operation {
	return fsmtest.Operation(&logv1.ApplyLimits{RetryBudgets: list})
}

// TestClientStands: how a client stands with its budget, through snapshots.
func TestClientStands(t *testing.T) {
	t.Parallel()
	d := fsmtest.WithShadow(t)
	d.At(0, budgets(standardBudget()))
	d.At(100*time.Second, fsmtest.Report("n1", 1, &logv1.ClientSlice{
		Client: "c", Slice: 100, Total: 400, Retries: 30, Throttled: 7, Denied: 40, Early: 2, Error: "429", Errors: 7,
	}))
	d.At(101*time.Second, fsmtest.Report("n2", 1, &logv1.ClientSlice{
		Client: "c", Slice: 101, Total: 60, Retries: 40, Throttled: 1, Error: "timeout", Errors: 9,
	}))
	want := fsm.ClientStat{
		Client: "c", Count: counted.Count{Total: 460, Retries: 70, Throttled: 8, Denied: 40, Early: 2},
		Fault: counted.Fault{Text: "timeout", Times: 9}, Budget: standardBudget(), Left: 28, Above: true,
	}
	check := func(name string, now time.Duration, want fsm.ClientStat) {
		t.Helper()
		if diff := cmp.Diff(want, d.Client(bucket.Instant(now), "c"), protocmp.Transform()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	check("above the fraction that warns", 0, want)
	d.At(102*time.Second, fsmtest.Report("n2", 1, &logv1.ClientSlice{Client: "c", Slice: 102, Total: 40, Retries: 40}))
	want.Count.Total, want.Count.Retries = 500, 110
	want.Left, want.Over = 0, true
	// At 401 s forty are left, which are too few to count.
	want.FreesIn = 299 * time.Second
	check("over its budget", 102*time.Second, want)
	off := standardBudget()
	off.Mode = logv1.Mode_MODE_OFF
	d.At(103*time.Second, budgets(off))
	want.Budget, want.Over, want.Above, want.FreesIn = off, false, false, 0
	check("the budget is off", 103*time.Second, want)
	if list := d.Clients(0, 0); len(list) != 1 || list[0].Count.Retries != 110 {
		t.Errorf("%v", list)
	}
	for name := range d.Retrying() {
		if name != "c" {
			t.Errorf("%q retries", name)
		}
	}
	d.At(500 * time.Second)
	check("an hour of throttled answers", 0, fsm.ClientStat{
		Client: "c", Count: counted.Count{Throttled: 8}, Budget: off, Left: 51,
	})
}

// TestBudgetsThatCantBe: every field of a retry budget has its bounds.
func TestBudgetsThatCantBe(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*logv1.RetryBudget){
		"min_retries":          func(b *logv1.RetryBudget) { b.MinRetries, b.MinRetriesInterval = -1, 1 },
		"min_retries_interval": func(b *logv1.RetryBudget) { b.MinRetries, b.MinRetriesInterval = 1, -1 },
		"scope":                func(b *logv1.RetryBudget) { b.Scope = 2 },
		"mode":                 func(b *logv1.RetryBudget) { b.Mode = 4 },
		"warn_fraction":        func(b *logv1.RetryBudget) { b.WarnFraction = 10_000 },
		"warn_for":             func(b *logv1.RetryBudget) { b.WarnFor = -1 },
		"max_fraction":         func(b *logv1.RetryBudget) { b.MaxFraction = 10_000 },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			d := fsmtest.WithShadow(t)
			bad := standardBudget()
			change(bad)
			refusal := d.At(0, budgets(bad))[0].GetRefusal()
			if want := "retry_budgets[0]." + field; refusal.GetField() != want {
				t.Errorf("%v, want a refusal of %s", refusal, want)
			}
		})
	}
	t.Run("A17_a_floor_of_less_than_one", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.WithShadow(t)
		bad := standardBudget()
		bad.MinRetries, bad.MinRetriesInterval = 1, int64(5*time.Minute)+1
		if refusal := d.At(0, budgets(bad))[0].GetRefusal(); refusal.GetField() != "retry_budgets[0].min_retries" {
			t.Errorf("%v, want a refusal", refusal)
		}
		bad.MinRetriesInterval = int64(5 * time.Minute)
		if refusal := d.At(0, budgets(bad))[0].GetRefusal(); refusal != nil {
			t.Errorf("one in a window: %v", refusal)
		}
	})
}

// TestSlicesThatCantBe: a report is taken whole or not at all.
func TestSlicesThatCantBe(t *testing.T) {
	t.Parallel()
	for field, bad := range map[string]*logv1.ClientSlice{
		"total":     {Client: "c", Total: 1, Retries: 2},
		"throttled": {Client: "c", Throttled: -1},
		"denied":    {Client: "c", Denied: counted.MaxCount + 1},
		"early":     {Client: "c", Early: -1},
		"errors":    {Client: "c", Errors: -1},
		"error":     {Client: "c", Error: strings.Repeat("x", counted.MaxFault+1)},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			d := fsmtest.WithShadow(t)
			good := &logv1.ClientSlice{Client: "good", Total: 1}
			refusal := d.At(0, fsmtest.Report("n1", 1, good, bad))[0].GetRefusal()
			if want := "slices[1]." + field; refusal.GetField() != want || d.KnowsClient("good") {
				t.Errorf("%v, want a refusal of %s", refusal, want)
			}
		})
	}
}

// TestRefusedStrangersCostNothing: the cap on clients holds whatever is reported.
func TestRefusedStrangersCostNothing(t *testing.T) {
	t.Parallel()
	t.Run("S1-52", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.WithShadow(t)
		d.At(0, fsmtest.Operation(&logv1.Form{
			ClusterId: "0123456789abcdef0123456789abcdef", Caps: &logv1.Caps{Clients: 3},
		}))
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			d.At(time.Second, fsmtest.Report("n1", 1, &logv1.ClientSlice{Client: name, Slice: 1, Total: 1, Denied: 9}))
		}
		if n := d.Counts().Clients; n != 3 {
			t.Errorf("%d clients are kept, the cap is 3", n)
		}
	})
}
