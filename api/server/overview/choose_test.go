package overview_test

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cluster/queue"
)

// TestManyLimits: where there are more than a picture shows, those that press are in it.
func TestManyLimits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		apply := &logv1.ApplyLimits{}
		for i := range 150 {
			apply.Limits = append(apply.Limits, &logv1.Limit{
				Name: fmt.Sprintf("limit-%03d", i), Unlimited: true, Target: 10_000, MaxKeys: 1, Lease: int64(time.Second),
			})
		}
		s.node.Apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: apply}})
		s.node.SetQueues([]queue.ClassState{{Place: queue.Place{Limit: "limit-149"}, Class: "live", Waiting: 3}})
		s.node.Overview().Decided(time.Now(), &logv1.Acquire{}, &logv1.AcquireResult{
			Denials: []*logv1.Denial{{Limit: "limit-148"}},
		}, 0)
		s.node.Overview().Decided(time.Now(), &logv1.Acquire{
			Charges: []*logv1.Charge{{Limit: "limit-147", Amount: 1}},
		}, &logv1.AcquireResult{Granted: true}, 0)
		shown, err := s.hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		list := shown.Response.GetLimits()
		if len(list) != 100 || shown.Response.GetLimitsTotal() != 150 {
			t.Fatalf("%d limits of %d, want 100 of 150", len(list), shown.Response.GetLimitsTotal())
		}
		for i, want := range map[int]string{
			0: "limit-000", 96: "limit-096", 97: "limit-147", 98: "limit-148", 99: "limit-149",
		} {
			if got := list[i].GetName(); got != want {
				t.Errorf("limit %d is %s, want %s", i, got, want)
			}
		}
		if list[99].GetWaiting() != 3 {
			t.Errorf("%v, want what waits", list[99])
		}
	})
}
