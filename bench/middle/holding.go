package middle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
)

// holding takes slots, waits for them where it must, and gives them back.
type holding struct {
	*faults
	crowd *crowd
	key   string
	// held is what clients know to be theirs, taken counts how often.
	held, taken atomic.Int64
}

func (h *holding) busy() int64 { return h.held.Load() }

func (h *holding) run(ctx, calls context.Context) {
	var workers sync.WaitGroup
	for w := range 12 {
		workers.Go(func() {
			for i := w; pause(ctx, time.Millisecond); i++ {
				h.one(calls, i)
			}
		})
	}
	workers.Wait()
}

func (h *holding) one(ctx context.Context, node int) {
	request := &quorleasev1.AcquireRequest{
		LeaseId: bench.NewID(), Track: true, Client: "holding",
		MaxWait: durationpb.New(longestWait), Charges: charge(slotLimit, h.key, "slots", 1),
	}
	answer, err := until(ctx, h.crowd, node, longestWait+patience,
		func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.AcquireResponse, error) {
			return a.Acquire(ctx, request)
		})
	if err != nil {
		h.add("slots: acquire %s: %v", request.GetLeaseId(), err)
		return
	}
	// One whose waiter had gone was given back already.
	if !granted(answer) || answer.GetLease().GetState() != quorleasev1.LeaseState_OPEN {
		return
	}
	h.taken.Add(1)
	if n := h.held.Add(1); n > slotCount {
		h.add("slots: %d are held of %d", n, slotCount)
	}
	pause(ctx, 50*time.Millisecond)
	h.held.Add(-1)
	_, err = until(ctx, h.crowd, node+1, patience,
		func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.ReleaseResponse, error) {
			return a.Release(ctx, &quorleasev1.ReleaseRequest{LeaseId: request.GetLeaseId(), Client: "holding"})
		})
	if err != nil {
		h.add("slots: release %s: %v", request.GetLeaseId(), err)
	}
}

// check wants every slot back.
func (h *holding) check(ctx context.Context, c *crowd) int {
	in, err := c.limits(1).Inspect(ctx, &quorleasev1.LimitsInspectRequest{Limit: slotLimit, Key: h.key})
	if err != nil || in.GetOpenLeases() != 0 || in.GetBuckets()[0].GetOpen() != 0 {
		h.add("slots: %d leases with %d slots are open after all were given back, %v",
			in.GetOpenLeases(), in.GetBuckets()[0].GetOpen(), err)
	}
	return int(h.taken.Load())
}
