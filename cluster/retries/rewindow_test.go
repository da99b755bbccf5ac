package retries_test

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// TestAWindowChangesBetweenReports: what was reported and what was not both count, though
// they come to lie in one slice.
func TestAWindowChangesBetweenReports(t *testing.T) {
	t.Parallel()
	for name, window := range map[string]time.Duration{
		"G12_longer": 10 * time.Minute, "G12_shorter": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, 1, nil)
			o.now = 7 * time.Second
			ask := func(n int) {
				for range n {
					o.ask(work("c", "gpt"), 1, granted())
				}
			}
			ask(10)
			o.report()
			ask(10)
			o.apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
				RetryBudgets: []*logv1.RetryBudget{budgetOf(func(b *logv1.RetryBudget) { b.Window = int64(window) })},
			}}})
			ask(1)
			if got := o.stat("c").Count; got.Total != 21 || got.Retries != 21 {
				t.Errorf("%d requests and %d retries count, want 21 of each", got.Total, got.Retries)
			}
		})
	}
}
