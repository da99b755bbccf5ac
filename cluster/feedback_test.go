package cluster_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/events"
)

// hear tells a node what a provider said, until it is answered. To say it twice does no
// harm.
func hear(t *testing.T, c *clustertest.Cluster, name string, s *logv1.Signal) {
	t.Helper()
	c.Eventually("feedback at "+name, func() error {
		_, err := c.Node(name).Do(t.Context(), said(s), 0)
		return err
	})
}

func said(s *logv1.Signal) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_Feedback{
		Feedback: &logv1.Feedback{Client: "gateway", Signals: []*logv1.Signal{s}},
	}}
}

func throttled(limit string, wait time.Duration) *logv1.Signal {
	return &logv1.Signal{Limit: limit, Kind: logv1.Signal_KIND_THROTTLED, Wait: int64(wait), Reason: "rate_limit_exceeded"}
}

// denialOf is why a node denies one request.
func denialOf(t *testing.T, c *clustertest.Cluster, name, limit string) *logv1.Denial {
	t.Helper()
	answer := c.Decide(name, &logv1.Acquire{
		Charges: []*logv1.Charge{{Limit: limit, Dimension: "requests", Amount: 1}},
	})
	if answer.GetGranted() {
		t.Fatalf("%s granted %s: %v", name, limit, answer)
	}
	return answer.GetDenials()[0]
}

// TestPausesOutliveLeaders: whoever leads next knows of a pause, and tells nobody to come
// back before the provider's wait is over in real time.
func TestPausesOutliveLeaders(t *testing.T) {
	t.Parallel()
	for round := range 5 {
		t.Run(fmt.Sprintf("S3-24_round_%d", round), func(t *testing.T) {
			t.Parallel()
			c := clustertest.New(t, 3, clustertest.Options{})
			c.ApplyLimits(c.Leader(), clustertest.Rate("ten", 10, time.Second, 100))
			const wait = 30 * time.Second
			leader := c.Leader()
			began := time.Now()
			// The leader dies while it is told, or just after.
			node, told := c.Node(c.Followers()[0]), false
			var telling sync.WaitGroup
			telling.Go(func() {
				again := time.NewTicker(20 * time.Millisecond)
				defer again.Stop()
				for range 500 {
					if _, err := node.Do(t.Context(), said(throttled("ten", wait)), 0); err == nil {
						told = true
						return
					}
					<-again.C
				}
			})
			if round%2 == 0 {
				telling.Wait()
			}
			c.Crash(leader)
			telling.Wait()
			if !told {
				t.Fatal("nobody heard of it")
			}
			for _, name := range c.Running() {
				d := denialOf(t, c, name, "ten")
				opens := time.Since(began) + time.Duration(d.GetRetryAfter())
				if d.GetReason() != logv1.Reason_REASON_PAUSED || opens < wait {
					t.Errorf("%s: %v, which is %v after the 429; want PAUSED and no less than %v", name, d, opens, wait)
				}
			}
			c.Restart(leader)
			c.RequireSameState()
		})
	}
}

// TestBlocksOutliveEverything: a spend cap is there after all nodes were down, and each
// node says it once.
func TestBlocksOutliveEverything(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 3, clustertest.Options{})
	c.ApplyLimits(c.Leader(), clustertest.Rate("ten", 10, time.Second, 100))
	t.Run("S3-27", func(t *testing.T) {
		capped := &logv1.Signal{Limit: "ten", Kind: logv1.Signal_KIND_SPEND_CAP, Reason: "insufficient_quota"}
		for _, name := range c.Names() {
			hear(t, c, name, capped)
		}
		c.RequireSameState()
		for _, name := range c.Names() {
			if got := countOf(t, c, name, events.SpendCapReached); got != 1 {
				t.Errorf("%s: %d events of a spend cap, want one", name, got)
			}
		}
		names := c.Names()
		for _, name := range names {
			c.Crash(name)
		}
		for _, name := range names {
			c.Restart(name)
		}
		c.Eventually("a leader", func() error {
			if c.Leader() == "" {
				return errors.New("none")
			}
			return nil
		})
		for _, name := range names {
			if d := denialOf(t, c, name, "ten"); d.GetReason() != logv1.Reason_REASON_BLOCKED || d.GetRetryAfter() != 0 {
				t.Errorf("%s after all were down: %v, want BLOCKED for ever", name, d)
			}
		}
	})
}

// countOf counts the events of a kind in a node's ring.
func countOf(t *testing.T, c *clustertest.Cluster, name string, kind events.Kind) (count int) {
	t.Helper()
	all := uint64(0)
	s, err := c.Node(name).Events().Subscribe(&all)
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, ok, err := s.TryNext()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return count
		}
		if e.Kind == kind {
			count++
		}
	}
}
