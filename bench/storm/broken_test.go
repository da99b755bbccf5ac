package storm

import (
	"strings"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

// TestGuaranteesBroken: an authority that grants more than there is ends its scenario,
// which then fails, whatever its figures were.
func TestGuaranteesBroken(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		grants int
		ok     bool
	}{"G1_all_there_is": {10, true}, "G1_a_grant_too_much": {11, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Scenario{Slug: "s", Twins: []string{"before"}, run: func(_ uint64, o *Outcome) {
				w := newWorld(1)
				limit := authority.Limit("l", authority.Dimension("requests", 1, time.Minute, 10))
				cluster := authority.New(w.Stage, 3, &logv1.ApplyLimits{Limits: []*logv1.Limit{limit}})
				for range row.grants {
					cluster.Seed(&logv1.Acquire{Charges: []*logv1.Charge{authority.Charge("l", "", "requests", 1)}})
				}
				w.until(time.Second)
				o.show(Done, 1)
			}}
			o := s.Run(1)
			broken, shown := o.Figure(GuaranteesBroken)
			if o.OK != row.ok || !shown || broken.OK != row.ok || strings.Contains(o.Text, "G1: ") == row.ok {
				t.Errorf("%+v", o)
			}
		})
	}
}
