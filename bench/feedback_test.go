package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// gateway speaks to one of three nodes.
type gateway struct {
	admission quorleasev1.AdmissionClient
	limits    quorleasev1.LimitsClient
}

func gateways(t *testing.T, nodes *Nodes) []gateway {
	t.Helper()
	list := make([]gateway, nodes.Len())
	for i := range list {
		conn, err := Dial(nodes.GRPC(i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		list[i] = gateway{quorleasev1.NewAdmissionClient(conn), quorleasev1.NewLimitsClient(conn)}
	}
	return list
}

// provided is a limit with a bucket a deployment that stands for a provider's.
func provided(t *testing.T, nodes *Nodes) {
	t.Helper()
	burst := int64(1000)
	err := ApplyLimit(t.Context(), nodes.GRPC(0), &quorleasev1.Limit{
		Name: "provider", Per: []string{"key"}, Ramp: durationpb.New(time.Minute),
		Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: &burst, Rate: &quorleasev1.Rate{Amount: 1000, Interval: durationpb.New(time.Minute)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (g gateway) hears(ctx context.Context, key string, kind quorleasev1.Feedback_Kind) error {
	_, err := g.admission.Report(ctx, &quorleasev1.ReportRequest{Client: "gateway", Feedback: []*quorleasev1.Feedback{{
		Kind: kind, Limit: "provider", Key: key, Wait: durationpb.New(time.Minute), Reason: "rate_limit_exceeded",
	}}})
	return err
}

// refused is how a node answers by a report, and how long after its return: an acquire,
// which the leader decides, and the node's own replica.
type refused struct {
	reason           quorleasev1.Reason
	acquire, replica time.Duration
}

// refusing waits until the node refuses the key by its own replica too.
func (g gateway) refusing(ctx context.Context, key string, since time.Time) (refused, error) {
	answer, err := g.admission.Acquire(ctx, &quorleasev1.AcquireRequest{
		Charges: []*quorleasev1.Charge{{Limit: "provider", Key: key, Dimension: "requests", Amount: 1}},
	})
	r := refused{acquire: time.Since(since)}
	if err != nil || len(answer.GetDenials()) == 0 {
		return r, fmt.Errorf("%v, %w", answer, err)
	}
	r.reason = answer.GetDenials()[0].GetReason()
	for {
		in, err := g.limits.Inspect(ctx, &quorleasev1.LimitsInspectRequest{Limit: "provider", Key: key, Stale: true})
		if err != nil {
			return r, err
		}
		if in.GetControl() != nil {
			r.replica = time.Since(since)
			return r, nil
		}
		// Asking all the time would be what takes the time.
		if err := pause(ctx, time.Millisecond); err != nil {
			return r, err
		}
	}
}

// heard is how long after the return of each of many reports the last node went by it.
type heard struct {
	acquires, replicas []time.Duration
	// held is how long the machine held things up meanwhile: the longest that this process
	// stood still, or that a report took, which is one commit.
	held time.Duration
}

// hearing reports a hundred times, each time another deployment and to the next node.
func hearing(ctx context.Context, t *testing.T, all []gateway, run int) (h heard) {
	t.Helper()
	watch := standing(ctx)
	for round := range 100 {
		key := fmt.Sprintf("deployment-%d-%d", run, round)
		began := time.Now()
		if err := all[round%len(all)].hears(ctx, key, quorleasev1.Feedback_THROTTLED); err != nil {
			t.Fatal(err)
		}
		since := time.Now()
		h.held = max(h.held, since.Sub(began))
		var asking sync.WaitGroup
		answers := make([]refused, len(all))
		for i, g := range all {
			asking.Go(func() {
				var err error
				if answers[i], err = g.refusing(ctx, key, since); err != nil || answers[i].reason != quorleasev1.Reason_PAUSED {
					t.Errorf("round %d, node %d: %v, %v; want PAUSED", round, i, answers[i].reason, err)
				}
			})
		}
		asking.Wait()
		last := slices.MaxFunc(answers, func(a, b refused) int { return cmp.Compare(a.acquire, b.acquire) })
		h.acquires = append(h.acquires, last.acquire)
		last = slices.MaxFunc(answers, func(a, b refused) int { return cmp.Compare(a.replica, b.replica) })
		h.replicas = append(h.replicas, last.replica)
	}
	slices.Sort(h.acquires)
	slices.Sort(h.replicas)
	h.held = max(h.held, watch())
	return h
}

// standing watches how long this process stands still, until it is called again.
func standing(ctx context.Context) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	longest := time.Duration(0)
	watching.Go(func() {
		for before := time.Now(); pause(ctx, time.Millisecond) == nil; before = time.Now() {
			longest = max(longest, time.Since(before)-time.Millisecond)
		}
	})
	return func() time.Duration {
		cancel()
		watching.Wait()
		return longest
	}
}

// TestFeedbackIsEverywhereAtOnce measures a hundred times how long it takes from the
// return of a report to the last of three nodes that answers by it: the maximum is at most
// 100 ms. There is not one acquire that any node grants after the report has returned,
// because a report returns when the leader has applied it, and the leader decides. That
// a replica shows it comes later, with the next message to that node, and decides
// nothing.
//
// On a machine that holds a process or a commit up for longer than a quarter of that the
// maximum is the machine's. It is measured again then; where it held things up each
// time a second is enough.
func TestFeedbackIsEverywhereAtOnce(t *testing.T) {
	const (
		aim   = 100 * time.Millisecond
		busy  = time.Second
		tries = 5
	)
	nodes := startCluster(t, nil)
	provided(t, nodes)
	all := gateways(t, nodes)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	best, calm := time.Hour, false
	for run := range tries {
		h := hearing(ctx, t, all, run)
		for what, took := range map[string][]time.Duration{
			"acquire refused": h.acquires, "replica that shows it": h.replicas,
		} {
			t.Logf("from a report's return to the last %s, of 100: median %v, 99 of them within %v, at most %v",
				what, took[50].Round(time.Microsecond), took[98].Round(time.Microsecond), took[99].Round(time.Microsecond))
		}
		most := max(h.acquires[99], h.replicas[99])
		t.Logf("the machine held things up for %v", h.held.Round(time.Microsecond))
		if t.Failed() || most <= aim {
			return
		}
		best, calm = min(best, most), calm || h.held <= aim/4
	}
	if calm || best > busy {
		t.Errorf("the last came after %v, want at most %v", best, aim)
	}
}

// TestASpendCapCallsAPersonOnce: three gateways are told of one spend cap. Nothing is
// granted any more on any node, the receiver of alerts hears of it once, and once that
// an operator has ended it: from whoever leads then.
func TestASpendCapCallsAPersonOnce(t *testing.T) {
	h := newHook(t)
	nodes := startCluster(t, nil, "--alert-webhook", h.URL)
	provided(t, nodes)
	all := gateways(t, nodes)
	t.Run("S3-27", func(t *testing.T) {
		for _, g := range all {
			if err := g.hears(t.Context(), "openai", quorleasev1.Feedback_SPEND_CAP); err != nil {
				t.Fatal(err)
			}
		}
		for i, g := range all {
			r, err := g.refusing(t.Context(), "openai", time.Now())
			if err != nil || r.reason != quorleasev1.Reason_BLOCKED {
				t.Errorf("node %d: %v, %v; want BLOCKED", i, r.reason, err)
			}
		}
		h.awaitOf(t, "openai", "firing")
		all[1].clears(t, "openai")
		answer, err := all[2].admission.Acquire(t.Context(), &quorleasev1.AcquireRequest{
			Charges: []*quorleasev1.Charge{{Limit: "provider", Key: "openai", Dimension: "requests", Amount: 1}},
		})
		if err != nil || answer.GetDecision() != quorleasev1.Decision_GRANTED {
			t.Errorf("cleared: %v, %v; want granted", answer, err)
		}
		h.awaitOf(t, "openai", "firing resolved")
	})
	t.Run("S3-27_the_leader_is_killed_in_the_middle", func(t *testing.T) {
		if err := all[0].hears(t.Context(), "azure", quorleasev1.Feedback_SPEND_CAP); err != nil {
			t.Fatal(err)
		}
		h.awaitOf(t, "azure", "firing")
		leader, err := nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := nodes.Signal(leader, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		survivor := (leader + 1) % nodes.Len()
		waitForOtherLeader(t, nodes, survivor, leader)
		// The next one can't know that it was told a moment ago: the same again.
		h.awaitOf(t, "azure", "firing firing")
		all[survivor].clears(t, "azure")
		h.awaitOf(t, "azure", "firing firing resolved")
		restart(t, nodes, leader)
		h.quiet(t, h.told(), 2*time.Second)
	})
}

// clears opens a key again.
func (g gateway) clears(t *testing.T, key string) {
	t.Helper()
	_, err := g.limits.Adjust(t.Context(), &quorleasev1.LimitsAdjustRequest{
		Limit: "provider", Key: key, Reason: "paid",
		Change: &quorleasev1.LimitsAdjustRequest_ClearBlock{ClearBlock: true},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitOf waits until that has been told of a key, under one id.
func (h *hook) awaitOf(t *testing.T, key, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		var told, ids []string
		h.mu.Lock()
		for _, d := range h.got {
			if d.Kind == "SpendCapReached" && d.Name == "cluster" && d.Labels["key"] == key {
				told, ids = append(told, d.Status), append(ids, d.ID)
			}
		}
		h.mu.Unlock()
		if ids = slices.Compact(ids); len(ids) > 1 {
			t.Fatalf("%s is told of under the ids %q", key, ids)
		}
		if strings.Join(told, " ") == want {
			return
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("of %s was told %q, want %q", key, told, want)
		}
	}
}
