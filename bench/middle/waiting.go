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

// longestWait is the max_wait of everything that waits.
const longestWait = time.Second

// waiting is more callers than the limit can serve, all of whom wait.
type waiting struct {
	*faults
	crowd *crowd
	key   string
	under atomic.Int64

	mu sync.Mutex
	// longest is how long an answer took, answers counts them. Guarded by mu.
	longest time.Duration
	answers int
}

func (w *waiting) busy() int64 { return w.under.Load() }

func (w *waiting) run(ctx, calls context.Context) {
	var workers sync.WaitGroup
	for i := range 24 {
		workers.Go(func() {
			for n := i; pause(ctx, time.Millisecond); n++ {
				w.one(calls, n)
			}
		})
	}
	workers.Wait()
}

// one waits, and goes on waiting for what is left of the time where its node dies.
func (w *waiting) one(ctx context.Context, node int) {
	id, began := bench.NewID(), time.Now()
	w.under.Add(1)
	answer, err := until(ctx, w.crowd, node, longestWait+patience,
		func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.AcquireResponse, error) {
			request := &quorleasev1.AcquireRequest{
				LeaseId: id, Track: true, Client: "waiting", Charges: charge(queueLimit, w.key, "requests", 1),
			}
			if left := longestWait - time.Since(began); left > 0 {
				request.MaxWait = durationpb.New(left)
			}
			return a.Acquire(ctx, request)
		})
	w.under.Add(-1)
	took := time.Since(began)
	if err != nil {
		w.add("waiting: acquire %s: %v", id, err)
	}
	if err == nil && !granted(answer) {
		switch r := reason(answer); r {
		case quorleasev1.Reason_WAIT_EXPIRED, quorleasev1.Reason_RATE:
		default:
			w.add("waiting: acquire %s is denied as %v", id, r)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	w.longest = max(w.longest, took)
}

// check wants every answer within max_wait and one failover. A second is for a machine
// that has much else to do.
func (w *waiting) check(gap time.Duration) int {
	if most := longestWait + gap + time.Second; w.longest > most {
		w.add("waiting: an answer took %v, want at most %v after a failover of %v", w.longest, most, gap)
	}
	return w.answers
}
