package cluster_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// queued is a limit at which acquires may wait.
func queued(limit *logv1.Limit) *logv1.Limit {
	limit.Queue = &logv1.Queue{Max: 10_000, MaxWait: int64(time.Minute)}
	return limit
}

// by makes an acquire one of a client and a class.
func by(op *logv1.Acquire, client, class string) *logv1.Acquire {
	op.Client, op.Class = client, class
	return op
}

// wait hands in an acquire that may wait, with a deadline long after.
func wait(n *cluster.Node, op *logv1.Acquire, maxWait time.Duration) (<-chan outcome, *cluster.Pending) {
	start := time.Now()
	done := make(chan outcome, 1)
	p := &cluster.Pending{
		Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}},
		MaxWait:   maxWait,
		Done:      func(r *logv1.Result, err error) { done <- outcome{r, err, time.Since(start)} },
	}
	n.Submit(p)
	synctest.Wait()
	return done, p
}

// grantedAfter waits for a grant and fails unless it came after about so long.
func (b *bubble) grantedAfter(done <-chan outcome, want time.Duration) *logv1.AcquireResult {
	b.Helper()
	o := <-done
	r := o.result.GetAcquire()
	if o.err != nil || !r.GetGranted() || o.after < want-20*time.Millisecond || o.after > want+60*time.Millisecond {
		b.Fatalf("after %v, want a grant after %v: %v, %v", o.after, want, r, o.err)
	}
	return r
}

// waiting is how many wait at a limit without keys, as the leader says.
func (b *bubble) waiting(limit string) int64 {
	sum := int64(0)
	for _, class := range b.Node(b.Leader()).Queues(b.Context(), limit, "") {
		sum += class.Waiting
	}
	return sum
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	t.Run("granted_when_it_has_refilled", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			c.ApplyLimits("a", queued(clustertest.Rate("gpt", 10, time.Second, 1)))
			for _, name := range []string{c.Leader(), c.Followers()[0]} {
				c.Decide(name, clustertest.Acquire("gpt", 1))
				first, _ := wait(c.Node(name), clustertest.Acquire("gpt", 1), 10*time.Second)
				second, _ := wait(c.Node(name), clustertest.Acquire("gpt", 1), 10*time.Second)
				if r := b.grantedAfter(first, 100*time.Millisecond); r.GetQueue().GetPosition() != 1 {
					b.Errorf("at %s: %v", name, r)
				}
				if r := b.grantedAfter(second, 200*time.Millisecond); r.GetQueue().GetPosition() != 2 {
					b.Errorf("at %s: %v", name, r)
				}
				pass(time.Second)
			}
			c.RequireSameState()
		})
	})
	t.Run("G6_nothing_overtakes_the_head", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			c.ApplyLimits("a", queued(clustertest.Rate("gpt", 10, time.Second, 10)))
			n := c.Node(c.Followers()[0])
			clustertest.Granted(b, n, "gpt")
			head, _ := wait(n, clustertest.Acquire("gpt", 5), 10*time.Second)
			pass(300 * time.Millisecond)
			// Three tokens are there, and are the head's.
			r := c.Decide(c.Leader(), clustertest.Acquire("gpt", 1))
			denial := r.GetDenials()[0]
			// Two more for the head and one for itself.
			if r.GetGranted() || denial.GetReason() != logv1.Reason_REASON_RATE || r.GetQueue().GetPosition() != 2 ||
				denial.GetRetryAfter() < int64(250*time.Millisecond) || denial.GetRetryAfter() > int64(350*time.Millisecond) {
				b.Errorf("beside the head: %v", r)
			}
			b.grantedAfter(head, 500*time.Millisecond)
			// Its hint was honest.
			pass(100 * time.Millisecond)
			if r := c.Decide(c.Leader(), clustertest.Acquire("gpt", 1)); !r.GetGranted() {
				b.Errorf("after the wait that it was told: %v", r)
			}
		})
	})
	t.Run("T27_the_head_needs_the_whole_burst", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			c.ApplyLimits("a", queued(clustertest.Rate("gpt", 10, time.Second, 10)))
			n := c.Node("a")
			clustertest.Granted(b, n, "gpt")
			head, _ := wait(n, clustertest.Acquire("gpt", 10), 10*time.Second)
			start := time.Now()
			for time.Since(start) < 900*time.Millisecond {
				if c.Decide(c.Followers()[0], clustertest.Acquire("gpt", 1)).GetGranted() {
					b.Fatalf("overtaken after %v", time.Since(start))
				}
				pass(20 * time.Millisecond)
			}
			b.grantedAfter(head, time.Second)
		})
	})
	t.Run("G7_a_lone_wait_ends", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, testLoneWaitEnds)
	})
	t.Run("a_wait_ends", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, testWaitEnds)
	})
}

// testLoneWaitEnds: who waits alone for what was used up a moment ago is told when there is some.
func testLoneWaitEnds(b bubble) {
	b.ApplyLimits("a", queued(clustertest.Rate("gpt", 1, time.Minute, 10)))
	n := b.Node(b.Followers()[0])
	for range 10 {
		clustertest.Granted(b, n, "gpt")
	}
	o := <-first(wait(n, clustertest.Acquire("gpt", 1), 100*time.Millisecond))
	denial := o.result.GetAcquire().GetDenials()
	if o.err != nil || len(denial) != 1 || denial[0].GetReason() != logv1.Reason_REASON_WAIT_EXPIRED ||
		denial[0].GetRetryAfter() < int64(59*time.Second) || denial[0].GetRetryAfter() > int64(time.Minute) {
		b.Errorf("%v, %v; want the minute that one more takes", denial, o.err)
	}
}

func testWaitEnds(b bubble) {
	c := b.Cluster
	limit := queued(clustertest.Rate("gpt", 1, time.Minute, 1))
	limit.Queue.Max = 2
	c.ApplyLimits("a", limit)
	n := c.Node(c.Followers()[0])
	clustertest.Granted(b, n, "gpt")
	expires, _ := wait(n, clustertest.Acquire("gpt", 1), 2*time.Second)
	canceled, p := wait(n, clustertest.Acquire("gpt", 1), 20*time.Second)
	o := <-first(wait(n, clustertest.Acquire("gpt", 1), 20*time.Second))
	r := o.result.GetAcquire()
	if denial := r.GetDenials(); o.err != nil || denial[0].GetReason() != logv1.Reason_REASON_QUEUE_FULL ||
		denial[0].GetRetryAfter() < int64(2*time.Minute) || r.GetQueue().GetPosition() != 3 {
		b.Errorf("a third of two: %v, %v", r, o.err)
	}
	if waits := b.waiting("gpt"); waits != 2 {
		b.Errorf("%d wait", waits)
	}
	o = <-expires
	r = o.result.GetAcquire()
	if denial := r.GetDenials(); o.err != nil || o.after > 2100*time.Millisecond ||
		denial[0].GetReason() != logv1.Reason_REASON_WAIT_EXPIRED || denial[0].GetRetryAfter() < int64(50*time.Second) ||
		r.GetQueue().GetWaited() < int64(1900*time.Millisecond) {
		b.Errorf("one that has waited long enough: %v, %v after %v", r, o.err, o.after)
	}
	n.Cancel(p)
	if o := <-canceled; o.err == nil {
		b.Errorf("one that was canceled: %v", o)
	}
	hasty := make(chan outcome, 1)
	n.Submit(&cluster.Pending{
		Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: clustertest.Acquire("gpt", 1)}},
		MaxWait:   time.Minute, Deadline: time.Now().Add(time.Second),
		Done: func(r *logv1.Result, err error) { hasty <- outcome{result: r, err: err} },
	})
	if o := <-hasty; !errors.Is(o.err, cluster.ErrDeadline) {
		b.Errorf("one whose deadline passed: %v", o)
	}
	pass(100 * time.Millisecond)
	if waits := b.waiting("gpt"); waits != 0 {
		b.Errorf("%d wait", waits)
	}
	// None is held against anybody: the next is told the bucket's own wait.
	if r := c.Decide("a", clustertest.Acquire("gpt", 1)); r.GetQueue() != nil {
		b.Errorf("with nobody waiting: %v", r)
	}
	c.RequireSameState()
}

func first(done <-chan outcome, _ *cluster.Pending) <-chan outcome { return done }

func TestWaitingAndLeaders(t *testing.T) {
	t.Parallel()
	for how, leave := range map[string]func(b bubble, leader string){
		"transferred": func(b bubble, leader string) {
			if err := b.Node(leader).Raft().LeadershipTransfer().Error(); err != nil {
				b.Fatal(err)
			}
		},
		"deposed": func(b bubble, _ string) { depose(b.Cluster) },
		"crashed": func(b bubble, leader string) {
			b.Crash(leader)
			b.Cleanup(func() { b.Restart(leader) })
		},
	} {
		t.Run("T25_a_leader_is_"+how, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(b bubble) { testWaitersMoveOn(b, how == "transferred", leave) })
		})
	}
	t.Run("T24_the_time_held_is_added", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			c := b.Cluster
			limit := queued(clustertest.Rate("gpt", 1, 3*time.Second, 1))
			limit.Lease = int64(2 * time.Second)
			c.ApplyLimits("a", limit)
			n := c.Node(c.Followers()[0])
			clustertest.Granted(b, n, "gpt")
			start := time.Now()
			done, _ := wait(n, clustertest.Track("gpt", 1), 10*time.Second)
			r := b.grantedAfter(done, 3*time.Second)
			// Counted from before it asked, as holders do.
			if ends := start.Add(time.Duration(r.GetTtl())); time.Until(ends) < 1900*time.Millisecond {
				b.Errorf("granted for %v after %v", time.Duration(r.GetTtl()), time.Since(start))
			}
		})
	})
	t.Run("T26_a_waiter_that_has_gone", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) { testGoneWaiter(b, false) })
	})
	t.Run("T26_a_waiter_that_comes_back", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) { testGoneWaiter(b, true) })
	})
}

// Waiters go on at the next leader, in their order, and each is granted once.
func testWaitersMoveOn(b bubble, everywhere bool, leave func(bubble, string)) {
	c := b.Cluster
	c.ApplyLimits("a", queued(clustertest.Rate("gpt", 1, time.Second, 10)))
	old := c.Leader()
	names := c.Followers()
	if everywhere {
		names = append(names, old)
	}
	clustertest.Granted(b, c.Node(old), "gpt")
	start := time.Now()
	var waits []<-chan outcome
	for i := range 6 {
		done, _ := wait(c.Node(names[i%len(names)]), clustertest.Track("gpt", 1), 30*time.Second)
		waits = append(waits, done)
		pass(10 * time.Millisecond)
	}
	pass(1500 * time.Millisecond)
	leave(b, old)
	var granted []time.Duration
	for i, done := range waits {
		o := <-done
		if o.err != nil || !o.result.GetAcquire().GetGranted() || o.after > 12*time.Second {
			b.Fatalf("waiter %d after %v: %v, %v", i, o.after, o.result, o.err)
		}
		granted = append(granted, time.Since(start))
	}
	// At the next leader they arrive in any order; the oldest is head there.
	late := 0
	for i := 1; i < len(granted); i++ {
		if granted[i] == granted[i-1] {
			late++
		}
	}
	if late > 2 {
		b.Errorf("out of order: %v", granted)
	}
	if waits := b.waiting("gpt"); waits != 0 {
		b.Errorf("%d still wait", waits)
	}
	if left := clustertest.Granted(b, c.Node(c.Leader()), "gpt"); left > 1 {
		b.Errorf("%d are left", left)
	}
}

// A grant that commits after its waiter went away is given back. A caller who came
// back before it committed keeps it.
func testGoneWaiter(b bubble, comesBack bool) {
	c := b.Cluster
	c.ApplyLimits("a", queued(clustertest.Rate("gpt", 1, time.Second, 4)))
	leader := c.Leader()
	n := c.Node(leader)
	clustertest.Granted(b, n, "gpt")
	op := clustertest.Track("gpt", 4)
	done, p := wait(n, op, 30*time.Second)
	pass(3990 * time.Millisecond)
	// The head is proposed and can't commit while the leader is cut off, for less
	// than it takes to be deposed.
	c.Isolate(leader)
	pass(25 * time.Millisecond)
	n.Cancel(p)
	if o := <-done; !cluster.MayHaveHappened(o.err) {
		b.Errorf("canceled while it was proposed: %v", o.err)
	}
	again := make(<-chan outcome)
	want := logv1.LeaseState_LEASE_STATE_RELEASED
	if comesBack {
		want = logv1.LeaseState_LEASE_STATE_OPEN
		again, _ = wait(n, op, 30*time.Second)
	}
	c.Heal()
	if comesBack {
		if o := <-again; !o.result.GetAcquire().GetGranted() {
			b.Errorf("one that came back: %v, %v", o.result, o.err)
		}
	}
	c.Eventually("the grant", func() error {
		if waits := b.waiting("gpt"); waits != 0 {
			return fmt.Errorf("%d wait", waits)
		}
		return nil
	})
	if r := c.Decide(c.Leader(), op); !r.GetGranted() || !r.GetRepeated() || r.GetState() != want {
		b.Errorf("want it %v: %v", want, r)
	}
}
