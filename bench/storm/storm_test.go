package storm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/storm"
)

// TestStorms: each scenario lands where an independent simulation of it did. settles
// says which of its figures settle which rows.
func TestStorms(t *testing.T) {
	t.Parallel()
	settles := map[string]map[string][]storm.Measure{
		"s3-first-wave": {
			"S3-07": {storm.Attempts, storm.Done, storm.PerDone, storm.RefusedPart},
			"S3-45": {storm.FullAttempts, storm.FullDone},
		},
		"s3-sustained": {"S3-08": {storm.PerDone, storm.LivePart, storm.RefusedPart}},
		"s3-jitter": {
			"S2-06": {storm.HerdFixed, storm.HerdJitter},
			"S3-14": {
				"attempts_per_done_fixed", "attempts_per_done_2s", "attempts_per_done_8s", "attempts_per_done_60s",
				"attempts_per_done_136s",
			},
		},
		"s3-after": {
			"S2-06": {storm.HerdNow},
			"S3-02": {storm.BacklogTime, storm.ProviderNo},
			"S3-10": {storm.LivePart, storm.LiveP99, storm.LiveMax},
			"S3-15": {storm.PerDone, storm.EmptyNo, storm.SecondNo},
			"S3-31": {storm.SizesInput, storm.SizesNo},
			"S3-33": {storm.PerDone},
			"S3-34": {storm.InputMean, storm.InputPart, storm.OutputPart, storm.InputWorst},
			"S3-35": {storm.BacklogTime, storm.BacklogRate},
			"S3-39": {storm.ETAOff},
			"S3-47": {storm.FirstSecond},
		},
		"s3-demo": {
			"S3-19": {"admitted_10", "held_10", "held_2s", "held_3s", "held_8s", "held_9s"},
			"S3-20": {"admitted_25", "held_25"},
			"S3-21": {"admitted_15", "held_15", "admitted_20", "held_20"},
		},
		"s1-reconciled": {
			"S1-07": {storm.BilledAfter},
			"S1-08": {storm.Billed, storm.BatchRefused},
			"S1-09": {storm.LegitRefused},
		},
		"s1-budget": {"S1-02": {storm.RetriesStop, storm.BatchRefused, storm.LocalRefusals}},
		"s1-fair":   {"S1-01": {storm.LegitRefused, storm.LegitP99, storm.ProviderNo}},
		"s1-alerts": {
			"S1-39": {storm.RedAfter},
			"S1-41": {storm.AlertsLong, storm.AlertAfter, storm.AlertsAlmost},
			"S1-42": {storm.AlertsShort},
		},
		"s2-naive": {
			"S2-07": {storm.Duplicates},
			"S2-08": {storm.FallbackPart},
			"S2-32": {storm.OthersP95},
		},
		"s2-seedgate": {"S2-24": {storm.SlippedThrough, storm.CheckedAttempts}},
		"s2-ours": {
			"S2-01": {storm.ProviderNo, storm.Drained, storm.PerDone},
			"S2-05": {storm.OthersP99},
			"S2-07": {storm.Duplicates},
			"S2-12": {storm.Coalesced, storm.Executed},
			"S2-18": {storm.InFlight},
			"S2-28": {storm.AwarePart, storm.AwareP95},
			"S2-32": {storm.OthersP95},
		},
	}
	for slug := range settles {
		if _, ok := storm.Find(slug); !ok {
			t.Errorf("there is no scenario %q", slug)
		}
	}
	for _, s := range storm.All() {
		t.Run(s.Slug, func(t *testing.T) {
			t.Parallel()
			o := seedOne(s)
			for _, f := range o.Missed() {
				t.Errorf("%s is %v%s: %+v", f.Name, f.Value, f.Unit, f)
			}
			for row, measures := range settles[s.Slug] {
				t.Run(row, func(t *testing.T) {
					for _, m := range measures {
						f, ok := o.Figure(m)
						if !ok || !f.OK || f.Low == nil && f.High == nil {
							t.Errorf("%s: %+v; want it there, bounded and in its range", m, f)
						}
					}
				})
			}
		})
	}
}

// TestScenarios: names are single, what is beside another exists, and every
// figure says what it is.
func TestScenarios(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, s := range storm.All() {
		if seen[s.Slug] || s.Title == "" || s.Text == "" {
			t.Errorf("%q is there twice or says nothing", s.Slug)
		}
		seen[s.Slug] = true
		for _, twin := range s.Twins {
			if !seen[twin] {
				t.Errorf("%s is seen beside %s, which does not come before it", s.Slug, twin)
			}
		}
	}
	if _, ok := storm.Find("s4"); ok {
		t.Error("there is a scenario that nobody wrote")
	}
}

// TestRepeats: a scenario follows from its seed, and does depend on it.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, slug := range []string{"s1-alerts", "s2-ours", "s2-naive", "s3-sustained"} {
		t.Run(slug, func(t *testing.T) {
			t.Parallel()
			s, _ := storm.Find(slug)
			first := s.Run(7)
			if diff := cmp.Diff(first, s.Run(7)); diff != "" {
				t.Errorf("the same seed gives another outcome (-first +second):\n%s", diff)
			}
			if slug != "s1-alerts" && cmp.Equal(first, s.Run(8)) {
				t.Error("another seed gives the same outcome")
			}
		})
	}
}

// TestFiguresAreNamed: each figure of each scenario has a name for people.
func TestFiguresAreNamed(t *testing.T) {
	t.Parallel()
	for _, slug := range []string{"s3-first-wave", "s3-jitter", "s3-demo", "s1-reconciled", "s2-seedgate", "s1-alerts"} {
		s, _ := storm.Find(slug)
		for _, f := range s.Run(2).Figures {
			if f.Name == "" {
				t.Errorf("%s: figure %s has no name", slug, f.Measure)
			}
		}
	}
}
