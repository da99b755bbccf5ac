package bubble_test

import (
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/bubble"
	"github.com/quorlease/quorlease/bench/storm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// played is how much of each storm a test plays, and which of its figures settle which rows.
var played = map[string]struct {
	part float64
	rows map[string][]storm.Measure
}{
	"s3-after-gateway": {0.1, map[string][]storm.Measure{
		"S3-15": {storm.PerDone, storm.ProviderNo},
		"S3-34": {storm.InputPart, storm.InputWorst},
		"S3-35": {storm.BacklogTime},
	}},
	"s3-faults-gateway": {0.1, map[string][]storm.Measure{
		"S3-37": {storm.Unique, storm.StallMax, "tokens_over_limit"},
		"S1-35": {"served_without_quorum"},
		"S1-36": {"quorum_alert_after_s"},
	}},
	"s3-cap-gateway":    {1, map[string][]storm.Measure{"S3-27": {"calls_after_spend_cap", "spend_cap_alerts"}}},
	"s3-growth-gateway": {1, nil},
	"s2-faults-gateway": {0.25, map[string][]storm.Measure{"S3-37": {storm.Unique, storm.DoneAgain, storm.ProviderNo}}},
	"s1-budget-gateway": {0.125, map[string][]storm.Measure{
		"S1-02": {storm.RetriesStop, storm.BatchRefused, storm.LocalRefusals},
		"S1-07": {"tokens_billed_unanswered"},
	}},
	"s1-fair-gateway": {0.1, map[string][]storm.Measure{
		"S1-01": {storm.LegitRefused, storm.LegitP99, storm.ProviderNo},
	}},
	"s2-ours-gateway": {0.5, map[string][]storm.Measure{
		"S2-01": {storm.ProviderNo, storm.Drained, storm.PerDone},
		"S2-12": {storm.Coalesced},
		"S2-32": {storm.OthersP95},
	}},
}

// TestStorms: whole gateways land where an independent simulation of the same storm did.
func TestStorms(t *testing.T) {
	t.Parallel()
	for _, s := range gateways.All() {
		if !plays(s.Slug) {
			continue
		}
		t.Run(s.Slug, func(t *testing.T) {
			t.Parallel()
			how, ok := played[s.Slug]
			if !ok {
				t.Fatal("nobody has said how much of it is played")
			}
			var o *storm.Outcome
			synctest.Test(t, func(t *testing.T) {
				var err error
				if o, err = s.Run(t.Context(), bubble.House(t, 1, how.part)); err != nil {
					t.Fatal(err)
				}
			})
			for row, measures := range how.rows {
				t.Run(row, func(t *testing.T) {
					for _, m := range measures {
						if f, ok := o.Figure(m); !ok || !f.OK {
							t.Errorf("%s: %+v", m, f)
						}
					}
				})
			}
			for _, f := range o.Figures {
				t.Logf("%s: %v %s", f.Name, f.Value, f.Unit)
			}
			for _, f := range o.Missed() {
				t.Errorf("%s: %v %s is out of its range", f.Name, f.Value, f.Unit)
			}
		})
	}
}
