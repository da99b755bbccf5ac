package overview_test

import (
	"context"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/cluster/queue"
)

// far is a node whose leader may not answer.
type far struct {
	*servertest.Node
	silent chan struct{}
}

func (f far) Queues(ctx context.Context, limit, key string) []queue.ClassState {
	select {
	case <-f.silent:
		<-ctx.Done()
		return nil
	default:
		return f.Node.Queues(ctx, limit, key)
	}
}

// TestWhatWaitedIsForgotten: after nobody has looked for a while, the first picture has
// what waits now, and where the leader does not say, nothing.
func TestWhatWaitedIsForgotten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		s.node.Apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
			Limits: []*logv1.Limit{{Name: "gpt", Unlimited: true, Target: 10_000, MaxKeys: 1, Lease: int64(time.Second)}},
		}}})
		node := far{Node: s.node, silent: make(chan struct{})}
		hub, _ := hubOf(t, node)
		waiting := func() int64 {
			t.Helper()
			shown, err := hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return shown.Response.GetLimits()[0].GetWaiting()
		}
		for _, n := range []int64{7, 0, 3} {
			s.node.SetQueues([]queue.ClassState{{Place: queue.Place{Limit: "gpt"}, Class: "live", Waiting: n}})
			if got := waiting(); got != n {
				t.Errorf("%d wait after an hour without a look, want %d", got, n)
			}
			pass(time.Hour)
		}
		close(node.silent)
		if got := waiting(); got != 0 {
			t.Errorf("%d wait, and nobody has said so for an hour", got)
		}
	})
}
