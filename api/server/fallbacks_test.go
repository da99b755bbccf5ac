package server_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// watched is a node that counts who reads its state.
type watched struct {
	*servertest.Node
	views atomic.Int64
}

func (w *watched) View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error {
	w.views.Add(1)
	return w.Node.View(ctx, stale, read)
}

// startWatched serves a node with the limits of these tests, which are of revision
// 1.
func startWatched(t *testing.T) (*watched, string) {
	t.Helper()
	w := &watched{}
	node, _, address := start(t, func(c *server.Config) {
		w.Node, _ = c.Node.(*servertest.Node)
		c.Node = w
	})
	burst := proto.Int64(10)
	rate := &quorleasev1.Rate{Amount: 10, Interval: durationpb.New(time.Minute)}
	_, err := quorleasev1.NewLimitsClient(dial(t, address)).Apply(patient(t), &quorleasev1.LimitsApplyRequest{
		Limits: []*quorleasev1.Limit{
			{
				Name: "a", TargetBp: proto.Int64(5000), Lease: durationpb.New(time.Second),
				OnQuorumLoss: quorleasev1.FallbackMode_SHARE_ON_LOSS, FallbackShareBp: proto.Int64(1250),
				Dimensions: []*quorleasev1.Dimension{
					{Name: "requests", Rate: rate, Burst: burst}, {Name: "tokens", Rate: rate, Burst: burst},
				},
			},
			{Name: "b", Unlimited: true, OnQuorumLoss: quorleasev1.FallbackMode_CLOSED_ON_LOSS},
		},
		RetryBudgets: []*quorleasev1.RetryBudget{{
			Name: "all", Client: "*", MaxRetries: proto.Uint32(2),
			MinRetries: &quorleasev1.Rate{Amount: 3, Interval: durationpb.New(time.Second)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if node.Revision() != 1 {
		t.Fatalf("revision %d, want 1", node.Revision())
	}
	w.views.Store(0)
	return w, address
}

// fallbacksOf are what an acquire of a twice and of b by somebody is told.
func fallbacksOf(revision uint64) *quorleasev1.Fallbacks {
	interval := durationpb.New(time.Minute)
	return &quorleasev1.Fallbacks{
		Revision: revision,
		Limits: []*quorleasev1.Fallback{
			{
				Limit: "a", Mode: quorleasev1.FallbackMode_SHARE_ON_LOSS, SharePpm: proto.Int64(125_000),
				Lease: durationpb.New(time.Second), Dimensions: []*quorleasev1.FallbackDimension{
					{Name: "requests", Amount: 5, Interval: interval, Burst: 10},
					{Name: "tokens", Amount: 5, Interval: interval, Burst: 10},
				},
			},
			{
				Limit: "b", Mode: quorleasev1.FallbackMode_CLOSED_ON_LOSS, Unlimited: true,
				Lease: durationpb.New(5 * time.Second),
			},
		},
		Retries: &quorleasev1.RetryRule{
			MaxRetries: 2, MaxFractionBp: 2000, Window: durationpb.New(5 * time.Minute),
			MinRequests: 50, RetryAfter: durationpb.New(time.Minute),
			MinRetries: 3, MinRetriesInterval: durationpb.New(time.Second),
		},
	}
}

func wantFallbacks(t *testing.T, got, want *quorleasev1.Fallbacks) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func asking(client string, amount int64, known *uint64) *quorleasev1.AcquireRequest {
	return &quorleasev1.AcquireRequest{
		Client: client, KnownRevision: known, Charges: []*quorleasev1.Charge{
			{Limit: "a", Dimension: "requests", Amount: amount},
			{Limit: "a", Dimension: "tokens", Amount: 1},
			{Limit: "b", Dimension: "anything", Amount: 1},
		},
	}
}

// Whoever does not hold the rules of the revision now is told them, granted or
// denied, and whoever does costs no look at the state.
func TestAnswersCarryFallbacks(t *testing.T) {
	t.Parallel()
	node, address := startWatched(t)
	admission := quorleasev1.NewAdmissionClient(dial(t, address))
	ask := func(r *quorleasev1.AcquireRequest) *quorleasev1.AcquireResponse {
		t.Helper()
		answer, err := admission.Acquire(patient(t), r)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	wantFallbacks(t, ask(asking("c", 1, nil)).GetFallbacks(), fallbacksOf(1))
	denied := ask(asking("c", 11, proto.Uint64(0)))
	if denied.GetDecision() != quorleasev1.Decision_DENIED {
		t.Fatalf("%v, want a denial", denied)
	}
	wantFallbacks(t, denied.GetFallbacks(), fallbacksOf(1))
	anonymous := fallbacksOf(1)
	anonymous.Retries = nil
	wantFallbacks(t, ask(asking("", 1, proto.Uint64(7))).GetFallbacks(), anonymous)
	if n := node.views.Swap(0); n != 3 {
		t.Errorf("the state was read %d times, want 3", n)
	}
	if answer := ask(asking("c", 1, proto.Uint64(1))); answer.Fallbacks != nil {
		t.Errorf("fallbacks %v though they are known", answer.GetFallbacks())
	}
	if n := node.views.Load(); n != 0 {
		t.Errorf("the state was read %d times for one who knows", n)
	}
	// A change makes them news.
	configure(t, dial(t, address), "c", nil)
	wantFallbacks(t, ask(asking("c", 1, proto.Uint64(1))).GetFallbacks(), fallbacksOf(2))
	// An error has no answer to carry them.
	_, err := admission.Acquire(patient(t), &quorleasev1.AcquireRequest{Charges: charge("absent", 1)})
	if e := server.ErrorOf(err); e.Cause.Reason != "LIMIT_NOT_FOUND" {
		t.Errorf("unknown limit: %v", err)
	}
}

// The same over a session, whose client stands for items that name none.
func TestSessionAnswersCarryFallbacks(t *testing.T) {
	t.Parallel()
	node, address := startWatched(t)
	stream := open(t, patient(t), address, hello())
	item := func(seq uint64, r *quorleasev1.AcquireRequest) *quorleasev1.RequestItem {
		return &quorleasev1.RequestItem{Seq: seq, Operation: &quorleasev1.RequestItem_Acquire{Acquire: r}}
	}
	send(t, stream, item(1, asking("", 1, nil)), item(2, asking("", 11, proto.Uint64(2))),
		item(3, asking("", 1, proto.Uint64(1))), item(4, asking("", 11, proto.Uint64(1))))
	answers, _ := receive(t, stream, 4)
	for seq := range uint64(2) {
		wantFallbacks(t, answers[seq+1].GetAcquire().GetFallbacks(), fallbacksOf(1))
		if known := answers[seq+3].GetAcquire(); known == nil || known.Fallbacks != nil {
			t.Errorf("item %d: %v, want no fallbacks", seq+3, known)
		}
	}
	if n := node.views.Load(); n != 2 {
		t.Errorf("the state was read %d times, want 2", n)
	}
}

// The decision is good without them: a node that can't be read now answers all the
// same.
func TestFallbacksAreNotWorthAnError(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, func(c *server.Config) {
		node, _ := c.Node.(*servertest.Node)
		c.Node = &unreadable{node}
	})
	conn := dial(t, address)
	configure(t, conn, "a", nil)
	answer, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t),
		&quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	if err != nil || answer.GetLease() == nil || answer.Fallbacks != nil {
		t.Errorf("%v, %v, want a lease alone", answer, err)
	}
}

type unreadable struct{ *servertest.Node }

func (*unreadable) View(context.Context, bool, func(*fsm.Machine, bucket.Instant)) error {
	return cluster.ErrClosed
}

// A limit that is only watched refuses nothing, also while nobody answers.
func TestWatchedLimitsAreOpen(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	write(t, node, "limits: [{name: a, mode: shadow, on_quorum_loss: closed, rate: {requests: 1/h}}]")
	answer := ask(t, dial(t, address), &quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	if got := answer.GetFallbacks().GetLimits()[0].GetMode(); got != quorleasev1.FallbackMode_OPEN_ON_LOSS {
		t.Errorf("mode %v", got)
	}
}
