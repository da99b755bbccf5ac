package check

import (
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestOtherKinds: what no rate bounds does not look as if G1 were broken.
func TestOtherKinds(t *testing.T) {
	t.Parallel()
	keyed := func() *logv1.Limit { return fsmtest.Keyed("hot", fsmtest.Dimension(t, "requests", "1/1s", 4)) }
	slots := keyed()
	slots.Kind = logv1.Kind_KIND_CONCURRENCY
	quota := keyed()
	quota.Kind = logv1.Kind_KIND_QUOTA
	own := keyed()
	own.Overrides = []*logv1.Override{{Value: "big"}, {Value: "team-", Prefix: true}}
	for name, row := range map[string]struct {
		limit    *logv1.Limit
		key      string
		warnings []*logv1.Denial
		broken   bool
	}{
		"G1_a_rate":                {keyed(), "big", nil, true},
		"slots":                    {slots, "big", nil, false},
		"a_quota":                  {quota, "big", nil, false},
		"a_key_of_its_own":         {own, "big", nil, false},
		"a_prefix_of_its_own":      {own, "team-a", nil, false},
		"G1_a_key_without_its_own": {own, "small", nil, true},
		"a_refusal_that_only_warns": {
			keyed(), "big", []*logv1.Denial{{Limit: "hot", Key: "big", Dimension: "requests"}}, false,
		},
		"G1_a_warning_about_another_key": {
			keyed(), "big", []*logv1.Denial{{Limit: "hot", Key: "small", Dimension: "requests"}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewReplay()
			r.changed(&logv1.LimitChange{Name: "hot", LimitAfter: row.limit})
			granted := &logv1.Result{Kind: &logv1.Result_Acquire{
				Acquire: &logv1.AcquireResult{Granted: true, Warnings: row.warnings},
			}}
			for range 5 {
				r.operation(fsmtest.Acquire("", fsmtest.Charge("hot", row.key, "requests", 1)), granted)
			}
			if h := r.History(); (h.Broken > 0) != row.broken {
				t.Errorf("broken at %d moments (%s), want %v", h.Broken, h.Worst, row.broken)
			}
		})
	}
}
