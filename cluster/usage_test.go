package cluster_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/audit"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/usage"
	"github.com/quorlease/quorlease/plan"
)

// TestUsageOfAllNodes: each node counts what it answered, and one says it for all that
// can be reached.
func TestUsageOfAllNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		c := b.Cluster
		c.ApplyLimits(c.Leader(), clustertest.Rate("gpt", 1, time.Hour, 3))
		for i, name := range []string{"a", "b", "c", "c"} {
			op := by(clustertest.Acquire("gpt", 1), "chat", "")
			done := make(chan error, 1)
			c.Node(name).Submit(&cluster.Pending{
				Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}}, Team: []string{"red", "blue"}[i%2],
				Done: func(_ *logv1.Result, err error) { done <- err },
			})
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		row := func(name string, count usage.Count) usage.Row {
			dimension := clustertest.Acquire("gpt", 1).GetCharges()[0].GetDimension()
			return usage.Row{Name: name, Limit: "gpt", Dimension: dimension, Count: count}
		}
		got := c.Node("a").Usage(b.Context(), usage.Query{By: usage.ByTeam, Hours: 1, Top: 10})
		want := []usage.Row{
			row("red", usage.Count{Grants: 2, Granted: 2}),
			row("blue", usage.Count{Grants: 1, Granted: 1, Denials: 1, Denied: 1}),
		}
		if diff := cmp.Diff(want, got.Rows); diff != "" || len(got.Nodes) != 3 || len(got.Missing) != 0 {
			b.Errorf("%v, without %v (-want +got)\n%s", got.Nodes, got.Missing, diff)
		}
		c.Isolate("c")
		got = c.Node("a").Usage(b.Context(), usage.Query{By: usage.ByClient, Hours: 1, Top: 10})
		want = []usage.Row{row("chat", usage.Count{Grants: 2, Granted: 2})}
		if diff := cmp.Diff(want, got.Rows); diff != "" || strings.Join(got.Missing, " ") != "c" {
			b.Errorf("%v, without %v (-want +got)\n%s", got.Nodes, got.Missing, diff)
		}
	})
}

// TestEstimatesOfAllNodes: every settle is measured once, by the node that was asked, and
// one node says it for all.
func TestEstimatesOfAllNodes(t *testing.T) {
	t.Parallel()
	t.Run("S3-36", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			c.ApplyLimits(c.Leader(), clustertest.Rate("gpt", 1, time.Hour, 1000))
			for i, used := range []int64{50, 100, 108, 100, 130} {
				lease := clustertest.Track("gpt", 100)
				settle := &logv1.Settle{LeaseId: lease.GetLeaseId(), Owner: lease.GetOwner(), Used: []*logv1.Usage{
					{Dimension: lease.GetCharges()[0].GetDimension(), Used: used},
				}}
				for _, op := range []*logv1.Operation{
					{Kind: &logv1.Operation_Acquire{Acquire: lease}},
					{Kind: &logv1.Operation_Settle{Settle: settle}},
					{Kind: &logv1.Operation_Settle{Settle: settle}},
				} {
					if _, err := c.Node([]string{"a", "b", "c"}[i%3]).Do(b.Context(), op, 0); err != nil {
						b.Fatal(err)
					}
				}
			}
			got := c.Node("b").Usage(b.Context(), usage.Query{By: usage.ByLimit, Hours: 1, Top: 10})
			want := plan.Errors{Tasks: 5, P50: 0, P90: 3000, P99: 3000, Most: 3000}
			if len(got.Rows) != 1 || got.Rows[0].Estimates == nil || got.Rows[0].Estimates.Errors() != want {
				b.Errorf("%+v, want %+v", got.Rows, want)
			}
		})
	})
}

// TestChangesAreAudited: every node writes what operators changed, with who and why.
func TestChangesAreAudited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inBubble(t, func(c *cluster.Config) { c.Audit = filepath.Join(dir, c.ID) }, func(b bubble) {
		c := b.Cluster
		leader := c.Leader()
		limit := clustertest.Rate("gpt", 1, time.Hour, 3)
		apply := &logv1.ApplyLimits{Limits: []*logv1.Limit{limit}, Author: "ann"}
		adjust := &logv1.Adjust{
			Limit: "gpt", Dimension: limit.GetDimensions()[0].GetName(), Change: &logv1.Adjust_Add{Add: -2},
			Reason: "a test", Author: "bob",
		}
		gone := &logv1.ApplyLimits{Delete: []string{"gpt"}, Author: "eve"}
		for _, op := range []*logv1.Operation{
			{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: apply}},
			{Kind: &logv1.Operation_Adjust{Adjust: adjust}},
			{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: gone}},
		} {
			if _, err := c.Node(leader).Do(b.Context(), op, 0); err != nil {
				b.Fatal(err)
			}
		}
		c.RequireSameState()
		c.Close()
	})
	for _, name := range []string{"a", "b", "c"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range bytes.Lines(text) {
			var c audit.Change
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.Join([]string{c.Change, c.Limit, c.Author, c.Value, c.Reason}, "|"))
			if c.Index == 0 || c.Time.IsZero() || c.Node != name || (c.Change == "adjusted") != (c.Revision == 0) {
				t.Errorf("%s", line)
			}
		}
		want := []string{"added|gpt|ann||", "adjusted|gpt|bob|-2|a test", "deleted|gpt|eve||"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
