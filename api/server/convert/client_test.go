package convert_test

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
)

// TestClientsRefuseWhatIsEnforced: a client is told no retry budget that its
// authority does not enforce.
func TestClientsRefuseWhatIsEnforced(t *testing.T) {
	t.Parallel()
	for mode, told := range map[logv1.Mode]bool{
		logv1.Mode_MODE_ENFORCE: true, logv1.Mode_MODE_OFF: false,
		logv1.Mode_MODE_SHADOW: false, logv1.Mode_MODE_WARN: false,
	} {
		t.Run("S1-47_"+mode.String(), func(t *testing.T) {
			t.Parallel()
			m := fsm.New()
			m.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{{Kind: &logv1.Operation_ApplyLimits{
				ApplyLimits: &logv1.ApplyLimits{RetryBudgets: []*logv1.RetryBudget{{
					Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
					Window: int64(5 * time.Minute), RetryAfter: int64(time.Minute), Mode: mode,
				}}},
			}}}})
			got := convert.Fallbacks(m, &logv1.Acquire{Client: "c"}).GetRetries()
			if (got != nil) != told {
				t.Errorf("%v, want one: %v", got, told)
			}
		})
	}
}
