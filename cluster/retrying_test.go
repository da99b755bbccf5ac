package cluster_test

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// attempt acquires for a client and returns the reason of the denial, or
// unspecified for a grant.
func attempt(t *testing.T, c *clustertest.Cluster, name, client string, attempt uint32) *logv1.Denial {
	t.Helper()
	op := clustertest.Acquire("gpt", 1)
	op.Client = client
	r, err := c.Node(name).Acquire(t.Context(), op, attempt)
	if err != nil {
		t.Fatal(err)
	}
	if r.GetGranted() {
		return &logv1.Denial{}
	}
	return r.GetDenials()[0]
}

func TestG12RetryBudget(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		t, c := b.T, b.Cluster
		if _, err := c.Node("a").ApplyLimits(t.Context(), &logv1.ApplyLimits{
			Limits: []*logv1.Limit{clustertest.Rate("gpt", 1_000_000, time.Second, 1_000_000)},
			RetryBudgets: []*logv1.RetryBudget{{
				Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
				Window: int64(time.Minute), RetryAfter: int64(time.Minute),
			}},
		}); err != nil {
			t.Fatal(err)
		}
		c.RequireSameState()
		const firsts = 200
		for i := range firsts {
			name := c.Names()[i%3]
			if d := attempt(t, c, name, "batch", 0); d.GetReason() != 0 {
				t.Fatalf("first attempt %d: %v", i, d)
			}
		}
		pass(3 * time.Second)
		// A storm at all nodes. A fifth of all requests may be
		// retries: 50 beside 200 first attempts, and what the nodes admit before
		// they have heard of one another.
		admitted, budget := 0, 0
		for i := range 300 {
			d := attempt(t, c, c.Names()[i%3], "batch", 1)
			switch d.GetReason() {
			case logv1.Reason_REASON_UNSPECIFIED:
				admitted++
			case logv1.Reason_REASON_RETRY_BUDGET:
				if d.GetRetryAfter() == int64(time.Minute) {
					budget++
					if left := time.Duration(d.GetFreesIn()); left <= 0 || left > time.Minute {
						t.Fatalf("frees in %s", left)
					}
				} else if d.GetRetryAfter() != int64(200*time.Millisecond) {
					t.Fatalf("got %v", d)
				}
			default:
				t.Fatalf("got %v", d)
			}
			pass(50 * time.Millisecond)
		}
		if admitted < 50 || admitted > 50+3*17+1 || budget == 0 {
			t.Errorf("%d retries admitted, %d refused by the budget", admitted, budget)
		}
		if d := attempt(t, c, "b", "batch", 4); d.GetReason() != logv1.Reason_REASON_ATTEMPTS || d.GetRetryAfter() != 0 {
			t.Errorf("a fourth retry: %v", d)
		}
		if d := attempt(t, c, "b", "other", 1); d.GetReason() != 0 {
			t.Errorf("another client: %v", d)
		}
		c.RequireSameState()
		for _, name := range c.Names() {
			var total, retries int64
			_ = c.Node(name).View(t.Context(), false, func(m *fsm.Machine, now bucket.Instant) {
				total, retries = m.ClientCounts(now, "batch")
			})
			if total != int64(firsts+admitted) || retries != int64(admitted) {
				t.Errorf("%s counts %d, %d retries; want %d, %d", name, total, retries, firsts+admitted, admitted)
			}
		}
		// Nothing has to be restarted for it.
		pass(75 * time.Second)
		if d := attempt(t, c, "c", "batch", 1); d.GetReason() != 0 {
			t.Errorf("after the window: %v", d)
		}
	})
}
