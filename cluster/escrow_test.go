package cluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// heldFor is how long escrow lives in these tests.
const heldFor = 3 * time.Second

// hot is a limit that nodes may hold escrow of.
func hot(name string, perSecond, burst int64) *logv1.Limit {
	limit := clustertest.Rate(name, perSecond, time.Second, burst)
	limit.Escrow = int64(heldFor)
	return limit
}

// plainly is an acquire that nobody names again.
func plainly(limit string, amount int64) *logv1.Acquire {
	op := clustertest.Acquire(limit, amount)
	op.LeaseId = nil
	return op
}

// tally is what callers at one node were told.
type tally struct {
	escrow, consensus, denied, failed int
	last                              error
}

func (s *tally) granted() int { return s.escrow + s.consensus }

// ask acquires one token at a node.
func (s *tally) ask(n *cluster.Node, limit string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r, err := n.Acquire(ctx, plainly(limit, 1), 0)
	switch {
	case err != nil:
		s.failed++
		s.last = err
	case !r.GetGranted():
		s.denied++
	case r.GetEscrow():
		s.escrow++
	default:
		s.consensus++
	}
}

// load has a caller at each node ask every so often for a time.
func (b *bubble) load(names []string, limit string, every, during time.Duration) map[string]*tally {
	all := make(map[string]*tally)
	done := make(chan struct{}, len(names))
	for _, name := range names {
		s := &tally{}
		all[name] = s
		go func() {
			defer func() { done <- struct{}{} }()
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			for begin := time.Now(); time.Since(begin) < during; <-ticker.C {
				s.ask(b.Node(name), limit)
			}
		}()
	}
	for range names {
		<-done
	}
	return all
}

// level is what is left in the bucket of a limit without keys, as a node has applied.
func (b *bubble) level(name, limit string) int64 {
	level := int64(-1)
	err := b.Node(name).View(context.Background(), true, func(m *fsm.Machine, now bucket.Instant) {
		if in, err := m.Inspect(now, limit, ""); err == nil {
			level = in.Buckets[0].Level
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return level
}

// TestEscrow: every node grants from memory, the log stays short, and no more is granted
// than the limit allows.
func TestEscrow(t *testing.T) {
	t.Parallel()
	t.Run("every_node_grants_G1", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			b.ApplyLimits("a", hot("gpt", 1000, 1000))
			before, begin := b.RequireSameState().Index, time.Now()
			granted := 0
			for name, s := range b.load(b.Names(), "gpt", 10*time.Millisecond, 10*time.Second) {
				if s.escrow < 990 || s.denied+s.failed > 0 {
					b.Errorf("%s: %+v", name, s)
				}
				granted += s.granted()
			}
			// A tick a second, and some two asks for each of three nodes in a life.
			if entries := b.RequireSameState().Index - before; entries > 100 {
				b.Errorf("%d grants took %d entries", granted, entries)
			}
			if most := 1000 + 1000*time.Since(begin).Milliseconds()/1000; int64(granted) > most {
				b.Errorf("%d granted, at most %d", granted, most)
			}
		})
	})
	t.Run("more_than_there_is_G1", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			b.ApplyLimits("a", hot("gpt", 100, 400))
			begin, granted := time.Now(), 0
			for _, s := range b.load(b.Names(), "gpt", 5*time.Millisecond, 10*time.Second) {
				granted += s.granted()
			}
			most := int(400 + 100*time.Since(begin).Milliseconds()/1000)
			if granted > most || granted < most*8/10 {
				b.Errorf("%d granted, at most %d", granted, most)
			}
		})
	})
	t.Run("what_is_not_spent_comes_back", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			// Nothing refills it in the time of the test.
			limit := hot("gpt", 1, 1000)
			limit.Dimensions[0].Interval = int64(time.Hour)
			limit.Dimensions[0].Amount = 3600 * 100
			b.ApplyLimits("a", limit)
			b.load([]string{"b"}, "gpt", 10*time.Millisecond, time.Second)
			pass(2 * heldFor)
			if level := b.level("a", "gpt"); level != 1000 {
				b.Errorf("%d tokens, want all", level)
			}
		})
	})
}

// TestEscrowNever: a limit that is exact, and one that is small, give none.
func TestEscrowNever(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(b bubble) {
		exact := hot("exact", 1000, 1000)
		exact.Exact = true
		b.ApplyLimits("a", exact, hot("small", 1000, 299))
		for _, limit := range []string{"exact", "small"} {
			for name, s := range b.load(b.Names(), limit, 50*time.Millisecond, 5*time.Second) {
				if s.escrow > 0 || s.consensus != 100 {
					b.Errorf("%s at %s: %+v", limit, name, s)
				}
			}
		}
	})
}

// TestEscrowWithoutALeader: an election interrupts nobody, and without a quorum nodes go
// on until what they hold is spent or has ended.
func TestEscrowWithoutALeader(t *testing.T) {
	t.Parallel()
	t.Run("an_election_interrupts_nobody", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			b.ApplyLimits("a", hot("gpt", 1000, 1000))
			b.load(b.Names(), "gpt", 20*time.Millisecond, 5*time.Second)
			old := b.Leader()
			b.Isolate(old)
			begin := time.Now()
			for name, s := range b.load(others(b.Cluster, old), "gpt", 20*time.Millisecond, 6*time.Second) {
				if s.denied+s.failed > 0 || s.escrow < 290 {
					b.Errorf("%s: %+v, %v", name, s, s.last)
				}
			}
			b.Logf("in %v", time.Since(begin))
			b.Heal()
			b.RequireSameState()
		})
	})
	t.Run("without_a_quorum_until_it_ends", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			b.ApplyLimits("a", hot("gpt", 1000, 1000))
			b.load(b.Names(), "gpt", 20*time.Millisecond, 5*time.Second)
			for _, name := range b.Names() {
				b.Isolate(name)
			}
			for name, s := range b.load(b.Names(), "gpt", 20*time.Millisecond, time.Second) {
				if s.escrow < 45 || s.failed > 0 {
					b.Errorf("%s at first: %+v, %v", name, s, s.last)
				}
			}
			pass(heldFor)
			for name, s := range b.load(b.Names(), "gpt", 20*time.Millisecond, time.Second) {
				if s.granted() > 0 || !errors.Is(s.last, cluster.ErrNoQuorum) {
					b.Errorf("%s at the end: %+v, %v", name, s, s.last)
				}
			}
			b.Heal()
			b.RequireSameState()
		})
	})
}

// TestEscrowEnds: a node that has applied a change, a pause or a block grants nothing
// from before.
func TestEscrowEnds(t *testing.T) {
	t.Parallel()
	signal := func(kind logv1.Signal_Kind) *logv1.Operation {
		return &logv1.Operation{Kind: &logv1.Operation_Feedback{Feedback: &logv1.Feedback{
			Signals: []*logv1.Signal{{Kind: kind, Limit: "gpt", Wait: int64(time.Minute)}},
		}}}
	}
	exact := hot("gpt", 1000, 1000)
	exact.Exact = true
	for name, op := range map[string]*logv1.Operation{
		"a_change": {Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{Limits: []*logv1.Limit{exact}}}},
		"a_pause":  signal(logv1.Signal_KIND_THROTTLED),
		"a_block":  signal(logv1.Signal_KIND_SPEND_CAP),
	} {
		t.Run("T9_"+name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(b bubble) {
				b.ApplyLimits("a", hot("gpt", 1000, 1000))
				b.load(b.Names(), "gpt", 20*time.Millisecond, 2*time.Second)
				if _, err := b.Node("a").Do(b.Context(), op, 0); err != nil {
					b.Fatal(err)
				}
				b.RequireSameState()
				for node, s := range b.load(b.Names(), "gpt", 20*time.Millisecond, time.Second) {
					if s.escrow > 0 || name != "a_change" && s.granted() > 0 {
						b.Errorf("%s: %+v", node, s)
					}
				}
			})
		})
	}
}

// TestEscrowKeepsPromises: who comes back when it was told to is granted, whatever nodes
// hold and ask for, and who waits is served when its tokens are there.
func TestEscrowKeepsPromises(t *testing.T) {
	t.Parallel()
	t.Run("T16_T46_G7_come_back", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			b.ApplyLimits("a", hot("gpt", 50, 600))
			b.load(b.Names(), "gpt", 10*time.Millisecond, 2*time.Second)
			for _, name := range b.Names() {
				first := b.Decide(name, plainly("gpt", 500))
				if first.GetGranted() {
					b.Fatal("not short: the test shows nothing")
				}
				pass(time.Duration(first.GetDenials()[0].GetRetryAfter()))
				if again := b.Decide(name, plainly("gpt", 500)); !again.GetGranted() {
					b.Errorf("%s: told %v, and then %v", name, first, again)
				}
			}
		})
	})
	t.Run("T27_nobody_overtakes", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			b.ApplyLimits("a", queued(hot("gpt", 50, 600)))
			b.load(b.Names(), "gpt", 10*time.Millisecond, 2*time.Second)
			pass(heldFor)
			left := b.level(b.Leader(), "gpt")
			if r := b.Decide("a", plainly("gpt", left-10)); !r.GetGranted() {
				b.Fatalf("%d are left, and %v", left, r)
			}
			done, _ := wait(b.Node("b"), plainly("gpt", 300), time.Minute)
			go b.load([]string{"a", "c"}, "gpt", 20*time.Millisecond, 5*time.Second)
			o := <-done
			if o.err != nil || !o.result.GetAcquire().GetGranted() || o.after > 6500*time.Millisecond {
				b.Errorf("after %v: %v, %v", o.after, o.result, o.err)
			}
			pass(5 * time.Second)
			synctest.Wait()
		})
	})
}

// TestEscrowPaysForLeases: a tracked acquire is an entry's, and paid from what its node
// holds: the bucket is not charged again.
func TestEscrowPaysForLeases(t *testing.T) {
	t.Parallel()
	t.Run("T41", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(b bubble) {
			limit := hot("gpt", 100, 1000)
			b.ApplyLimits("a", limit)
			b.load(b.Names(), "gpt", 10*time.Millisecond, time.Second)
			paid := 0
			for range 10 {
				op := clustertest.Track("gpt", 1)
				r := b.Decide("b", op)
				if !r.GetGranted() || !r.GetTracked() || r.GetEscrow() {
					b.Fatal(r)
				}
				paid += len(r.GetPaid())
				if again := b.Decide("c", op); !again.GetRepeated() {
					b.Errorf("the same again: %v", again)
				}
			}
			if paid < 8 {
				b.Errorf("%d of ten were paid from escrow", paid)
			}
			b.RequireSameState()
		})
	})
}
