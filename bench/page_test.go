package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/api/dashboard/browsertest"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// redWithin bounds the time from the first refusal to the red row.
const redWithin = time.Second

// TestThePageInAStorm: a batch job storms at three real nodes, and the page of one
// of them says so while it happens.
func TestThePageInAStorm(t *testing.T) {
	browser, err := browsertest.Open(t.Context())
	if errors.Is(err, browsertest.ErrMissing) {
		t.Skipf("%v: the page of real nodes was not looked at", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = browser.Close() })
	h := newHook(t)
	nodes := startCluster(t, nil, "--alert-webhook", h.URL)
	budget(t, nodes)
	provided(t, nodes)
	tab, err := browser.Tab()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	if err := tab.Look(1280, 900, "light"); err != nil {
		t.Fatal(err)
	}
	if code, err := tab.Visit("http://" + nodes.HTTP(0) + "/"); err != nil || code != 200 {
		t.Fatalf("%d, %v", code, err)
	}
	until := func(condition string) time.Time {
		t.Helper()
		at, err := tab.Until(condition, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		origin, err := browsertest.Ask[float64](tab, "performance.timeOrigin")
		if err != nil {
			t.Fatal(err)
		}
		return time.UnixMicro(int64(1000 * (origin + at)))
	}
	all := gateways(t, nodes)
	for range 60 {
		if denial := tryOnce(t.Context(), t, all[1], "checkout", 0); denial != nil {
			t.Fatalf("checkout is refused: %v", denial)
		}
	}
	// What it did by permits: the provider throttled all of it.
	if _, err := all[2].admission.Report(t.Context(), &quorleasev1.ReportRequest{
		Client:   "batch-scorer",
		Attempts: &quorleasev1.Attempts{Total: 30, Throttled: 30, Error: "rate_limit_exceeded", Errors: 30},
	}); err != nil {
		t.Fatal(err)
	}
	until(`document.getElementById("health").textContent === "healthy"
		&& document.querySelectorAll("#clients tbody tr").length > 1`)

	t.Run("S1-39_S1-40_the_row_is_red_and_the_alert_is_there_within_a_second", func(t *testing.T) {
		crossed := stormUntilOver(t, all)
		red := until(`document.querySelector("#clients tr.over bdi")?.textContent === "batch-scorer"`).Sub(crossed)
		alert := until(`document.getElementById("alert-list").textContent.includes("ClientOverBudget")
			&& document.getElementById("retry-alerts").textContent === "retry-budget alerts: 1 firing"`).Sub(crossed)
		t.Logf("the row was red %s after the first refusal, the alert listed after %s", red, alert)
		if red > redWithin || alert > redWithin {
			t.Errorf("want both at most %s after it", redWithin)
		}
		rows, err := browsertest.Ask[[]string](tab, `[...document.querySelectorAll("#clients tbody tr")]
			.map((r) => r.className + " " + [0, 1, 6].map((i) => r.cells[i].textContent.split(" ")[0]).join(" "))`)
		want := []string{"over batch-scorer 30 rate_limit_exceeded", " checkout 0 –"}
		if diff := cmp.Diff(want, rows); diff != "" || err != nil {
			t.Errorf("%v, %s", err, diff)
		}
		if troubles := tab.Troubles(); len(troubles) > 0 {
			t.Errorf("the page complains: %q", troubles)
		}
	})
	t.Run("S1-48_of_three_nodes_that_see_it_one_calls", func(t *testing.T) {
		h.await(t, "ClientOverBudget firing cluster")
		h.quiet(t, "ClientOverBudget firing cluster", 300*time.Millisecond)
	})
	data, err := tab.Picture()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "storm.png"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tryOnce acquires once and returns the first denial, nil where there is none.
func tryOnce(ctx context.Context, t *testing.T, g gateway, client string, attempt uint32) *quorleasev1.Denial {
	t.Helper()
	answer, err := g.admission.Acquire(ctx, &quorleasev1.AcquireRequest{
		Client: client, Attempt: attempt,
		Charges: []*quorleasev1.Charge{{Limit: "provider", Key: "gpt", Dimension: "requests", Amount: 1}},
	})
	if err != nil {
		t.Error(err)
		return nil
	}
	if len(answer.GetDenials()) == 0 {
		return nil
	}
	return answer.GetDenials()[0]
}

// isOver says whether a budget refused all that there is, not only a node's part
// of it, which is free again within a second.
func isOver(d *quorleasev1.Denial) bool {
	return d.GetReason() == quorleasev1.Reason_RETRY_BUDGET && d.GetRetryAfter().AsDuration() > time.Second
}

// stormUntilOver is scenario A7's loop: workers that retry at once, three times,
// whatever they are told. It returns when the budget first refused one of them.
func stormUntilOver(t *testing.T, all []gateway) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var once sync.Once
	var first time.Time
	var workers sync.WaitGroup
	for i := range 20 {
		workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if isOver(tryOnce(t.Context(), t, all[i%len(all)], "batch-scorer", uint32(n%4))) {
					once.Do(func() {
						first = time.Now()
						cancel()
					})
				}
			}
		})
	}
	workers.Wait()
	if first.IsZero() {
		t.Fatal("the budget refused nothing in 20 s")
	}
	return first
}
