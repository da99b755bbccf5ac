package cluster_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// windowOf is the window of a limit as a node has applied it.
func windowOf(t *testing.T, n *cluster.Node, limit, key string) (starts, ends time.Time) {
	t.Helper()
	var in *fsm.Inspection
	err := n.View(t.Context(), true, func(m *fsm.Machine, now bucket.Instant) {
		// A node that lags knows of no limit yet.
		in, _ = m.Inspect(now, limit, key)
	})
	if err != nil {
		t.Fatal(err)
	}
	if in == nil || in.Ends == 0 {
		return time.Time{}, time.Time{}
	}
	return time.Unix(0, in.Starts).UTC(), time.Unix(0, in.Ends).UTC()
}

// perHour is a quota of an hour.
func perHour(amount int64) *logv1.Limit {
	return &logv1.Limit{
		Name: "hour", Kind: logv1.Kind_KIND_QUOTA, Keyed: true, Target: 10_000, Lease: int64(time.Second), MaxKeys: 10,
		Calendar: &logv1.Calendar{Period: logv1.Calendar_PERIOD_HOUR, Timezone: "UTC"},
		Dimensions: []*logv1.Dimension{{
			Name: "requests", Interval: int64(time.Second), Burst: amount, MaxDebt: amount, MaxOpen: amount,
		}},
	}
}

// TestT6ClusterCalendar: three nodes of which one is a year ahead, led by each in
// turn. The hour rolls when it is over and not before, and the clock is named.
func TestT6ClusterCalendar(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"a", "b", "c"} {
		t.Run("T6_"+wrong+"_is_a_year_ahead", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { hoursPass(t, wrong) })
		})
	}
}

func hoursPass(t *testing.T, wrong string) {
	t.Helper()
	// The clocks of people are further than that of the bubble: one minute is left of
	// the hour.
	const past = 59 * time.Minute
	c := clustertest.New(t, 3, clustertest.Options{
		InMemory: true,
		Configure: func(name string, c *cluster.Config) {
			c.Wall = func() time.Time { return time.Now().Add(past) }
			if name == wrong {
				c.Wall = func() time.Time { return time.Now().Add(past).AddDate(1, 0, 0) }
			}
		},
	})
	c.ApplyLimits("a", perHour(5))
	take := func() *logv1.AcquireResult {
		op := clustertest.Acquire("hour", 1)
		op.Charges[0].Key = "x"
		return c.Decide("b", op)
	}
	first := time.Now().UTC().Truncate(time.Hour)
	during := func(hour int) {
		c.Eventually(fmt.Sprintf("the window of hour %d", hour), func() error {
			starts, ends := windowOf(t, c.Node("c"), "hour", "x")
			if want := first.Add(time.Duration(hour) * time.Hour); !starts.Equal(want) || !ends.Equal(want.Add(time.Hour)) {
				return fmt.Errorf("%v to %v", starts, ends)
			}
			return nil
		})
		granted := 0
		for ; take().GetGranted(); granted++ {
			// All of the hour's amount.
		}
		if granted != 5 {
			t.Errorf("hour %d: %d were granted, want 5", hour, granted)
		}
	}
	during(0)
	for range 3 {
		depose(c)
		pass(5 * time.Second)
		if take().GetGranted() {
			t.Errorf("led by %s the hour is another", c.Leader())
		}
	}
	pass(time.Until(first.Add(time.Hour - past)))
	during(1)
	if named := skewsSeen(t, c); len(named) != 1 || !named[wrong] {
		t.Errorf("clocks that were named: %v, want %s", named, wrong)
	}
	c.RequireSameState()
}

// skewsSeen are the nodes whose clocks any node's events name.
func skewsSeen(t *testing.T, c *clustertest.Cluster) map[string]bool {
	t.Helper()
	named := map[string]bool{}
	for _, name := range c.Names() {
		all := uint64(0)
		seen, err := c.Node(name).Events().Subscribe(&all)
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, ok, err := seen.TryNext()
			if err != nil || !ok {
				break
			}
			if e.Kind == events.ClockSkew {
				named[e.Node] = true
			}
		}
	}
	return named
}

// TestSlotsThroughThreeNodes: slots are exact, whoever asks where and how many ask
// at once.
func TestSlotsThroughThreeNodes(t *testing.T) {
	t.Parallel()
	slots := func(name string, most int64) *logv1.Limit {
		return &logv1.Limit{
			Name: name, Kind: logv1.Kind_KIND_CONCURRENCY, Target: 10_000, Lease: int64(time.Hour), MaxKeys: 100,
			Dimensions: []*logv1.Dimension{{Name: "slots", Interval: int64(time.Second), Burst: most}},
		}
	}
	ask := func(limit, key string, n int) []*logv1.Acquire {
		ops := make([]*logv1.Acquire, n)
		for i := range ops {
			ops[i] = clustertest.Track(limit, 1)
			ops[i].Charges[0].Key, ops[i].Charges[0].Dimension = key, "slots"
		}
		return ops
	}
	c := clustertest.New(t, 3, clustertest.Options{})
	tenant := slots("tenant", 4)
	tenant.Keyed = true
	c.ApplyLimits("a", tenant, slots("ten", 10))
	t.Run("S2-18", func(t *testing.T) {
		for _, key := range []string{"red", "blue"} {
			if n := grants(atOnce(t, c, ask("tenant", key, 120))); n != 4 {
				t.Errorf("%s: %d of 120 granted through three nodes, want 4", key, n)
			}
		}
	})
	t.Run("A14_two_thousand_for_ten_slots", func(t *testing.T) {
		if n := grants(atOnce(t, c, ask("ten", "", 2000))); n != 10 {
			t.Errorf("%d of 2000 granted, want 10", n)
		}
	})
}
