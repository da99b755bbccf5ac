package cluster_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// budgeted applies a limit that nothing meets and the standard retry budget.
func budgeted(b bubble, burst int64) {
	b.Helper()
	if _, err := b.Node("a").ApplyLimits(b.Context(), &logv1.ApplyLimits{
		Limits: []*logv1.Limit{clustertest.Rate("gpt", burst, time.Hour, burst)},
		RetryBudgets: []*logv1.RetryBudget{{
			Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
			Window: int64(5 * time.Minute), RetryAfter: int64(time.Minute),
			WarnFraction: 1000, WarnFor: int64(2 * time.Minute),
		}},
	}); err != nil {
		b.Fatal(err)
	}
	b.RequireSameState()
}

// clientStat is how a client stands at a node.
func clientStat(b bubble, node, client string) (stat fsm.ClientStat) {
	b.Helper()
	err := b.Node(node).View(b.Context(), true, func(m *fsm.Machine, now bucket.Instant) {
		stat = m.Client(now, client)
	})
	if err != nil {
		b.Fatal(err)
	}
	return stat
}

// over are the clients of which a node has said that they are over their budget.
func over(b bubble, node string) (names []string) {
	b.Helper()
	from := uint64(0)
	s, err := b.Node(node).Events().Subscribe(&from)
	if err != nil {
		b.Fatal(err)
	}
	for {
		e, ok, err := s.TryNext()
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			return names
		}
		if e.Kind == events.ClientOverBudget && e.Severity == events.Warning {
			names = append(names, e.Client)
		}
	}
}

// TestBudgetsInAStorm: a thousand calls at once over three nodes stay inside G12,
// another client does not notice, and every node names the client once.
func TestBudgetsInAStorm(t *testing.T) {
	t.Parallel()
	t.Run("S1-29_S1-39_G12", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			budgeted(b, 1_000_000)
			var admitted, spared atomic.Int64
			var calls sync.WaitGroup
			for i := range 1000 {
				calls.Go(func() {
					if attempt(b.T, b.Cluster, b.Names()[i%3], "storm", uint32(1+i%3)).GetReason() == 0 {
						admitted.Add(1)
					}
					if attempt(b.T, b.Cluster, b.Names()[i%3], "calm", 0).GetReason() == 0 {
						spared.Add(1)
					}
				})
			}
			calls.Wait()
			pass(3 * time.Second)
			// The rule lets 51 pass, and before the nodes have heard of one another each of
			// them a third of that: G12 is 51 and three times 17.
			if n := admitted.Load(); n < 51 || n > 51+3*17 {
				b.Errorf("%d of a thousand calls were admitted, want 51 to 102", n)
			}
			if spared.Load() != 1000 {
				b.Errorf("%d of another client's thousand calls were admitted", spared.Load())
			}
			stat := clientStat(b, "b", "storm")
			if stat.Count.Total != admitted.Load() || stat.Count.Retries != admitted.Load() {
				b.Errorf("%+v, want the %d retries that were admitted", stat.Count, admitted.Load())
			}
			if !stat.Over {
				b.Fatalf("%+v is within its budget", stat)
			}
			for _, node := range b.Names() {
				if d := attempt(b.T, b.Cluster, node, "storm", 0); d.GetReason() != logv1.Reason_REASON_RETRY_BUDGET {
					b.Errorf("at %s: %v, want a refusal", node, d)
				}
				if names := over(b, node); len(names) != 1 || names[0] != "storm" {
					b.Errorf("%s has named %v, want storm once", node, names)
				}
			}
			b.RequireSameState()
		})
	})
	t.Run("S1-34_S1-28", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			budgeted(b, 1_000_000)
			// One node, one call after the other, three retries for each piece of work.
			for i := range 200 {
				attempt(b.T, b.Cluster, "a", "failing", uint32(i%4))
				pass(200 * time.Millisecond)
			}
			pass(2 * time.Second)
			if got := clientStat(b, "c", "failing").Count; got.Total != 51 {
				b.Errorf("%+v, want exactly 51 recorded", got)
			}
		})
	})
}

// TestBudgetsAndLimitsAreApart: a client that its limit refuses has its whole
// retry budget, and one over its budget has taken nothing of the limit.
func TestBudgetsAndLimitsAreApart(t *testing.T) {
	t.Parallel()
	t.Run("S1-49_S1-18_S1-28", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			budgeted(b, 60)
			refused := map[logv1.Reason]int{}
			for range 100 {
				refused[attempt(b.T, b.Cluster, "a", "steady", 0).GetReason()]++
				pass(50 * time.Millisecond)
			}
			if refused[logv1.Reason_REASON_RATE] != 40 || refused[logv1.Reason_REASON_RETRY_BUDGET] != 0 {
				b.Errorf("%v, want 40 refused by the limit", refused)
			}
			pass(2 * time.Second)
			stat := clientStat(b, "a", "steady")
			if stat.Count.Total != 60 || stat.Count.Retries != 0 || stat.Left != 16 || stat.Count.Denied == 0 {
				b.Errorf("%+v, want 60 requests and a whole budget", stat)
			}
		})
	})
	t.Run("S1-49_a_budget_takes_nothing_of_a_limit", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			budgeted(b, 1000)
			for range 300 {
				attempt(b.T, b.Cluster, "a", "failing", 1)
				pass(200 * time.Millisecond)
			}
			var in *fsm.Inspection
			if err := inspectOf(b, "gpt", &in); err != nil {
				b.Fatal(err)
			}
			if level := in.Buckets[0].Level; level < 1000-51 {
				b.Errorf("%d of 1000 are left after 300 calls of which 51 are in budget", level)
			}
		})
	})
}

func inspectOf(b bubble, limit string, in **fsm.Inspection) error {
	var refused error
	err := b.Node("a").View(b.Context(), false, func(m *fsm.Machine, now bucket.Instant) {
		*in, refused = m.Inspect(now, limit, "")
	})
	if err != nil {
		return err
	}
	return refused
}
