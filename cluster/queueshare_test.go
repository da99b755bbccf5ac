package cluster_test

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/queue"
)

// classes are live with a half, and batch with nothing of its own.
var classes = []*logv1.Class{{Name: "live", Share: 5000, Burst: 5000}, {Name: "batch"}}

// Live traffic inside its half is granted at once, whatever batch asks for; batch
// gets what is left.
func TestWaitingBesideLive(t *testing.T) {
	t.Parallel()
	t.Run("G5_live_beside_a_queue_of_batch", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			limit := queued(clustertest.Rate("gpt", 20, time.Second, 20))
			limit.Classes = classes
			c.ApplyLimits("a", limit)
			start, granted := time.Now(), 0
			var batch []<-chan outcome
			for i := range 200 {
				op := by(clustertest.Acquire("gpt", 1), "backfill", "batch")
				done, _ := wait(c.Node(c.Names()[i%3]), op, 30*time.Second)
				batch = append(batch, done)
			}
			for i := range 30 {
				pass(100 * time.Millisecond)
				r := c.Decide(c.Names()[i%3], by(clustertest.Acquire("gpt", 1), "chat", "live"))
				if r.GetGranted() {
					granted++
				}
			}
			got := 0
			for _, done := range batch {
				select {
				case o := <-done:
					if !o.result.GetAcquire().GetGranted() {
						b.Errorf("batch: %v, %v", o.result, o.err)
					}
					got++
				default:
				}
			}
			// Ten of the burst are not live's, and ten a second.
			if granted != 30 || got < 38 || got > 45 {
				b.Errorf("%d of 30 live and %d of batch granted in %v", granted, got, time.Since(start))
			}
		})
	})
	t.Run("live_that_waits_goes_first", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			limit := queued(clustertest.Rate("gpt", 10, time.Second, 10))
			limit.Classes = []*logv1.Class{{Name: "live"}, {Name: "batch"}}
			c.ApplyLimits("a", limit)
			n := c.Node("a")
			c.Decide("a", by(clustertest.Acquire("gpt", 10), "chat", "live"))
			last, _ := wait(n, by(clustertest.Acquire("gpt", 1), "backfill", "batch"), time.Minute)
			var live []<-chan outcome
			for range 5 {
				done, _ := wait(n, by(clustertest.Acquire("gpt", 1), "chat", "live"), time.Minute)
				live = append(live, done)
			}
			for i, done := range live {
				b.grantedAfter(done, time.Duration(i+1)*100*time.Millisecond)
			}
			b.grantedAfter(last, 600*time.Millisecond)
		})
	})
}

// Who may not wait, and has to leave tokens to those who do, is told how long it takes
// until it is its turn: it comes back once, and not before.
func TestWhoLeavesTokensIsToldTheTruth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		asks        int64
		least, most time.Duration
	}{
		// The head has its 20 after 2.5 s, and 3 more than batch's own are there at 3.1 s.
		{"G7_behind_a_class_listed_before", 8, 3100 * time.Millisecond, 3400 * time.Millisecond},
		// Batch's own part has filled long before the head is served.
		{"G7_by_the_own_part", 2, 999 * time.Millisecond, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(b bubble) {
				c := b.Cluster
				limit := queued(clustertest.Rate("gpt", 10, time.Second, 50))
				limit.Classes = []*logv1.Class{
					{Name: "live", Share: 5000, Burst: 1000}, {Name: "batch", Share: 2000, Burst: 1000},
				}
				c.ApplyLimits("a", limit)
				c.Decide("a", by(clustertest.Acquire("gpt", 45), "chat", "live"))
				c.Decide("a", by(clustertest.Acquire("gpt", 5), "backfill", "batch"))
				head, _ := wait(c.Node("a"), by(clustertest.Acquire("gpt", 20), "chat", "live"), time.Minute)
				pass(time.Millisecond)
				again := by(clustertest.Acquire("gpt", tt.asks), "backfill", "batch")
				told := c.Decide("a", again)
				retry := time.Duration(told.GetDenials()[0].GetRetryAfter())
				if told.GetGranted() || retry < tt.least || retry > tt.most {
					b.Fatalf("told %v, want a denial for %v to %v", told, tt.least, tt.most)
				}
				pass(retry)
				if got := c.Decide("a", again); !got.GetGranted() {
					b.Errorf("after %v: %v, want granted", retry, got)
				}
				<-head
			})
		})
	}
}

// There is one queue for each key and class, whichever node callers ask, and its
// depth can be seen.
func TestOneQueueForEachKeyAndClass(t *testing.T) {
	t.Parallel()
	t.Run("S2-02", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			limit := queued(clustertest.Rate("tenant", 1, time.Minute, 2))
			limit.Keyed = true
			limit.Classes = []*logv1.Class{{Name: "live", Burst: 1}, {Name: "batch", Burst: 1}}
			c.ApplyLimits("a", limit)
			ask := func(i int, key, class string) *logv1.Acquire {
				op := by(clustertest.Acquire("tenant", 1), fmt.Sprint("client", i%4), class)
				op.Charges[0].Key = key
				return op
			}
			for _, key := range []string{"a", "b"} {
				for i := range 12 {
					wait(c.Node(c.Names()[i%3]), ask(i, key, []string{"live", "batch"}[i%2]), 10*time.Minute)
				}
			}
			pass(100 * time.Millisecond)
			for _, key := range []string{"a", "b"} {
				states := c.Node(c.Followers()[0]).Queues(b.Context(), "tenant", key)
				if len(states) != 2 || states[0].Class != "live" || states[0].Waiting != 5 || states[1].Waiting != 5 ||
					len(states[0].Clients) != 2 || states[0].Tokens[0] != (queue.Cost{Dimension: "requests", Tokens: 5}) {
					b.Errorf("key %s: %+v", key, states)
				}
			}
		})
	})
}

// While the queue has room nobody who may wait is refused, however many come at
// once, and each is served in its time.
func TestNobodyIsRefusedWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	t.Run("S3-17", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			c.ApplyLimits("a", queued(clustertest.Rate("gpt", 100, time.Second, 10)))
			var waits []<-chan outcome
			for i := range 200 {
				op := by(clustertest.Track("gpt", 1), fmt.Sprint("worker", i%40), "")
				done, _ := wait(c.Node(c.Names()[i%3]), op, 30*time.Second)
				waits = append(waits, done)
			}
			for i, done := range waits {
				if o := <-done; !o.result.GetAcquire().GetGranted() || o.after > 2200*time.Millisecond {
					b.Fatalf("worker %d after %v: %v, %v", i, o.after, o.result, o.err)
				}
			}
			c.RequireSameState()
		})
	})
}

// Slots come back when their holders are done, and whoever waits has them at once.
func TestWaitingForSlots(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		c := b.Cluster
		c.ApplyLimits("a", &logv1.Limit{
			Name: "slots", Target: 10_000, Lease: int64(20 * time.Second), MaxKeys: 1000, Kind: logv1.Kind_KIND_CONCURRENCY,
			Dimensions: []*logv1.Dimension{{Name: "slots", Interval: 1, Burst: 2}},
			Queue:      &logv1.Queue{Max: 100, MaxWait: int64(time.Minute)},
		})
		slot := func() *logv1.Acquire {
			op := clustertest.Track("slots", 1)
			op.Charges[0].Dimension = "slots"
			return op
		}
		held := []*logv1.Acquire{slot(), slot()}
		for _, op := range held {
			if r := c.Decide("a", op); !r.GetGranted() {
				b.Fatalf("a slot: %v", r)
			}
		}
		start := time.Now()
		done, _ := wait(c.Node(c.Followers()[0]), slot(), 30*time.Second)
		pass(2 * time.Second)
		release := &logv1.Operation{Kind: &logv1.Operation_Release{Release: &logv1.Release{LeaseId: held[0].GetLeaseId()}}}
		if _, err := c.Node("b").Do(b.Context(), release, 0); err != nil {
			b.Fatal(err)
		}
		b.grantedAfter(done, 2*time.Second)
		// The other slot ends by itself 20 seconds after it was granted.
		done, _ = wait(c.Node("c"), slot(), time.Minute+30*time.Second)
		o := <-done
		if at := time.Since(start); !o.result.GetAcquire().GetGranted() || at > 20*time.Second+200*time.Millisecond {
			b.Errorf("after %v: %v, %v", at, o.result, o.err)
		}
	})
}
