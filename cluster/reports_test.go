package cluster_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// reportTo reports 12 requests at a node until it is answered, and returns what
// was booked. Whatever became of earlier tries does no harm.
func reportTo(t *testing.T, c *clustertest.Cluster, name string, session []byte) int64 {
	t.Helper()
	booked := int64(0)
	c.Eventually("a report at "+name, func() error {
		result, err := c.Node(name).Do(t.Context(), &logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{
			ReportAdmitted: &logv1.ReportAdmitted{
				Session: session, Client: "gateway",
				Counts: []*logv1.AdmittedCount{{Limit: "ten", Dimension: "requests", Tokens: 12}},
			},
		}}, 0)
		if err != nil {
			return err
		}
		booked = result.GetAdmitted().GetBookings()[0].GetTokens()
		return nil
	})
	return booked
}

// TestT35ReportsThroughEveryNode: the same report at every node, before and after
// a leader is lost and after a restart, is booked once.
func TestT35ReportsThroughEveryNode(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 3, clustertest.Options{})
	c.ApplyLimits(c.Leader(), clustertest.Rate("ten", 1, time.Hour, 10))
	t.Run("T35", func(t *testing.T) {
		session := clustertest.LeaseID()
		booked := int64(0)
		for _, name := range c.Names() {
			booked += reportTo(t, c, name, session)
		}
		c.Eventually("the revision everywhere", func() error { return revisions(c, 1) })
		leader := c.Leader()
		c.Crash(leader)
		for _, name := range c.Running() {
			booked += reportTo(t, c, name, session)
		}
		c.Restart(leader)
		booked += reportTo(t, c, leader, session)
		if booked > 12 {
			t.Errorf("%d booked, want 12 at most", booked)
		}
		c.RequireSameState()
		c.Eventually("the revision after a restart", func() error { return revisions(c, 1) })
		for _, name := range c.Names() {
			var in *fsm.Inspection
			c.Eventually("a look at "+name, func() error { return inspect(t, c.Node(name), &in) })
			if b := in.Buckets[0]; b.Level != 0 || b.Debt != 2 || len(in.Reports) != 1 || in.Reports[0].Tokens != 12 {
				t.Errorf("%s: level %d, debt %d, %d reports; want 0, 2 and 1", name, b.Level, b.Debt, len(in.Reports))
			}
		}
	})
}

func revisions(c *clustertest.Cluster, want uint64) error {
	var errs []error
	for _, name := range c.Names() {
		if got := c.Node(name).Revision(); got != want {
			errs = append(errs, fmt.Errorf("%s is at revision %d, want %d", name, got, want))
		}
	}
	return errors.Join(errs...)
}

func inspect(t *testing.T, n *cluster.Node, in **fsm.Inspection) error {
	t.Helper()
	var refused error
	err := n.View(t.Context(), false, func(m *fsm.Machine, _ bucket.Instant) { *in, refused = m.Inspect(0, "ten", "") })
	return errors.Join(err, refused)
}
