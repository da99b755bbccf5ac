package benches_test

import (
	"errors"
	"strings"
	"testing"

	comparison "github.com/quorlease/quorlease/bench/compare/page"
	"github.com/quorlease/quorlease/bench/report"
	scaled "github.com/quorlease/quorlease/bench/scale/page"
	"github.com/quorlease/quorlease/bench/storm"
	stormy "github.com/quorlease/quorlease/bench/storm/page"
	"github.com/quorlease/quorlease/bench/whole"
	"github.com/quorlease/quorlease/cmd/quorlease/comparing"
	"github.com/quorlease/quorlease/cmd/quorlease/contend"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/measuring"
	"github.com/quorlease/quorlease/cmd/quorlease/scaling"
	"github.com/quorlease/quorlease/cmd/quorlease/storms"
)

// TestABrokenGuaranteeFailsEveryBench: a history that was found to break G1 or G2 makes
// each command end with exit code 1, whatever was measured.
func TestABrokenGuaranteeFailsEveryBench(t *testing.T) {
	t.Parallel()
	for _, guarantee := range []string{"G1", "G2"} {
		line := guarantee + " broken, by a log: a grant too much"
		checks := []report.Check{
			{Guarantee: "G1", By: "another log", OK: true, Text: "kept"},
			{Guarantee: guarantee, By: "a log", Text: "a grant too much"},
		}
		for name, finish := range map[string]func() error{
			"contention": func() error { return (&contend.Options{}).Finish(&report.Result{Checks: checks}) },
			"compare":    func() error { return (&comparing.Options{}).Finish(&comparison.Result{Checks: checks}) },
			"scale":      func() error { return (&scaling.Options{}).Finish(&scaled.Result{Checks: checks}) },
			"storm": func() error {
				return (&storms.Options{}).Finish(&stormy.Result{Scenarios: []*storm.Outcome{{
					Slug: line, Figures: []storm.Figure{{Measure: storm.GuaranteesBroken, Name: "broken", Value: 1}},
				}}})
			},
			"all": func() error { return (&measuring.Options{}).Finish(&whole.Result{Missed: []string{line}}) },
		} {
			t.Run(guarantee+"_"+name, func(t *testing.T) {
				t.Parallel()
				err := finish()
				var coded *exit.Error
				if err == nil || !strings.Contains(err.Error(), line) || errors.As(err, &coded) && coded.Code != exit.Failed {
					t.Errorf("%v, want exit code 1 and %q", err, line)
				}
			})
		}
	}
}
