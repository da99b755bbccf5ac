package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// TestTheLimitModel holds three real nodes to what a limit says about classes, retries
// and slots. The parts run one after the other, so that none takes another's processor.
func TestTheLimitModel(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, nil)
	all := gateways(t, nodes)
	limits := modelLimits()
	_, err := all[0].limits.Apply(t.Context(), &quorleasev1.LimitsApplyRequest{
		Limits: limits, RetryBudgets: []*quorleasev1.RetryBudget{{Name: "storms", Client: "storm-*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("G5_live_beside_a_batch_that_takes_all_it_can", func(t *testing.T) { liveBesideBatch(t, all) })
	t.Run("G12_one_retry_after_another", func(t *testing.T) { storm(t, all, "storm-in-turn", 0) })
	t.Run("G12_retries_all_at_once", func(t *testing.T) { storm(t, all, "storm-at-once", 300) })
	t.Run("A14_two_thousand_for_ten_slots", func(t *testing.T) { tenSlots(t, all) })
	if _, _, err := nodes.SameState(t.Context()); err != nil {
		t.Error(err)
	}
}

func modelLimits() []*quorleasev1.Limit {
	perSecond := func(name string, amount, burst int64) *quorleasev1.Limit {
		return &quorleasev1.Limit{Name: name, Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: proto.Int64(burst),
			Rate: &quorleasev1.Rate{Amount: amount, Interval: durationpb.New(time.Second)},
		}}}
	}
	shared := perSecond("shared", 20, 20)
	shared.Classes = []*quorleasev1.Class{{Name: "live", ShareBp: 5000}, {Name: "batch"}}
	return []*quorleasev1.Limit{
		shared, perSecond("wide", 100_000, 100_000),
		{Name: "ten", Concurrency: proto.Int64(10), Lease: durationpb.New(time.Hour)},
	}
}

// one asks for one token of a limit.
func (g gateway) one(
	ctx context.Context, limit string, as *quorleasev1.AcquireRequest,
) (*quorleasev1.AcquireResponse, error) {
	as.Charges = []*quorleasev1.Charge{{Limit: limit, Dimension: "requests", Amount: 1}}
	return g.admission.Acquire(ctx, as)
}

// liveBesideBatch lets batch drain what is free, and then counts for three seconds: live
// asks ten times a second, which is its guarantee, and batch borrows the other ten.
func liveBesideBatch(t *testing.T, all []gateway) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var batch, live atomic.Int64
	var callers, asked sync.WaitGroup
	for c := range 8 {
		// Half of them wait in line, the others come again at once.
		var wait *durationpb.Duration
		if c%2 == 0 {
			wait = durationpb.New(2 * time.Second)
		}
		callers.Go(func() {
			for pause(ctx, 5*time.Millisecond) == nil {
				answer, err := all[c%3].one(ctx, "shared", &quorleasev1.AcquireRequest{
					Client: "backfill", Class: "batch", MaxWait: wait,
				})
				if err != nil && ctx.Err() == nil {
					t.Errorf("batch: %v", err)
				}
				if answer.GetDecision() == quorleasev1.Decision_GRANTED {
					batch.Add(1)
				}
			}
		})
	}
	_ = pause(ctx, time.Second)
	before, began := batch.Load(), time.Now()
	for i := range 30 {
		_ = pause(ctx, time.Until(began.Add(time.Duration(i)*100*time.Millisecond)))
		asked.Go(func() {
			answer, err := all[i%3].one(ctx, "shared", &quorleasev1.AcquireRequest{Client: "chat", Class: "live"})
			if err != nil || answer.GetDecision() != quorleasev1.Decision_GRANTED {
				t.Errorf("live request %d: %v, %v; want granted", i, answer.GetDenials(), err)
				return
			}
			live.Add(1)
		})
	}
	_ = pause(ctx, time.Until(began.Add(3*time.Second)))
	took, borrowed := time.Since(began), batch.Load()-before
	asked.Wait()
	stop()
	callers.Wait()
	t.Logf("in %v: %d of 30 live requests and %d of batch", took.Round(time.Millisecond), live.Load(), borrowed)
	// In whole grants: 27 of 3.0002 s are nine a second.
	if least := math.Floor(9 * took.Seconds()); float64(borrowed) < least {
		t.Errorf("batch was granted %d in %v, want at least %.0f", borrowed, took, least)
	}
	// Together they stay inside the limit.
	if most := 20*took.Seconds() + 20 - float64(live.Load()); float64(borrowed) > most {
		t.Errorf("batch was granted %d in %v, want at most %.0f", borrowed, took, most)
	}
}

// storm retries everything through three nodes: so many at once, and then one by one
// until every node says that the client is over its budget.
func storm(t *testing.T, all []gateway, client string, atOnce int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	calmCtx, stop := context.WithCancel(ctx)
	var admitted, calm atomic.Int64
	var calls, beside sync.WaitGroup
	beside.Go(func() {
		for i := 0; pause(calmCtx, 5*time.Millisecond) == nil; i++ {
			answer, err := all[i%3].one(ctx, "wide", &quorleasev1.AcquireRequest{Client: "calm-" + client})
			if err != nil || answer.GetDecision() != quorleasev1.Decision_GRANTED {
				t.Errorf("a first attempt of another client: %v, %v; want granted", answer.GetDenials(), err)
			}
			calm.Add(1)
		}
	})
	over := func(i int) bool {
		answer, err := all[i%3].one(ctx, "wide", &quorleasev1.AcquireRequest{Client: client, Attempt: uint32(1 + i%3)})
		if err != nil {
			t.Errorf("retry %d: %v", i, err)
			return false
		}
		if answer.GetDecision() == quorleasev1.Decision_GRANTED {
			admitted.Add(1)
			return false
		}
		if r := answer.GetDenials()[0].GetReason(); r != quorleasev1.Reason_RETRY_BUDGET {
			t.Errorf("retry %d: %v, want RETRY_BUDGET", i, r)
		}
		// A node that has used up its part of what is left says no hour at which it frees.
		return answer.GetDenials()[0].GetFreesIn() != nil
	}
	for i := range atOnce {
		calls.Go(func() { over(i) })
	}
	calls.Wait()
	for i, row := 0, 0; row < 30; i++ {
		if row++; !over(i) {
			row = 0
		}
		if pause(ctx, 5*time.Millisecond) != nil {
			t.Error("there are nodes that do not know that the client is over its budget")
			break
		}
	}
	stop()
	beside.Wait()
	t.Logf("%d retries admitted, and %d first attempts of another client", admitted.Load(), calm.Load())
	// The rule lets 51 pass, and each node a third of that before it has heard of the others.
	if n := admitted.Load(); n < 51 || n > 51+3*17 {
		t.Errorf("%d retries were admitted, want 51 to 102", n)
	}
}

// tenSlots asks two thousand times at once for ten slots.
func tenSlots(t *testing.T, all []gateway) {
	t.Helper()
	var granted atomic.Int64
	var calls sync.WaitGroup
	for i := range 2000 {
		calls.Go(func() {
			answer, err := slot(t.Context(), all, i)
			if err != nil {
				t.Errorf("acquire %d: %v", i, err)
			}
			switch {
			case answer.GetDecision() == quorleasev1.Decision_GRANTED:
				granted.Add(1)
			case answer.GetDenials()[0].GetReason() != quorleasev1.Reason_CONCURRENCY:
				t.Errorf("acquire %d: %v, want CONCURRENCY", i, answer.GetDenials())
			}
		})
	}
	calls.Wait()
	if granted.Load() != 10 {
		t.Errorf("%d of 2000 granted, want 10", granted.Load())
	}
}

// slot asks for one until somebody answers, with one lease id.
func slot(ctx context.Context, all []gateway, i int) (*quorleasev1.AcquireResponse, error) {
	request := &quorleasev1.AcquireRequest{
		LeaseId: NewID(), Track: true, Client: fmt.Sprint("gateway-", i%3),
		Charges: []*quorleasev1.Charge{{Limit: "ten", Dimension: "slots", Amount: 1}},
	}
	for {
		answer, err := all[i%3].admission.Acquire(ctx, request)
		if err == nil || !MayHaveHappened(err) && status.Code(err) != codes.ResourceExhausted {
			if err == nil && answer.GetDecision() != quorleasev1.Decision_GRANTED && len(answer.GetDenials()) == 0 {
				err = errors.New("denied without a reason")
			}
			return answer, err
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return nil, err
		}
	}
}
