package middle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
)

// What a lease asks for, and what of it is used.
const (
	leaseAmount = 3
	leaseUsed   = 1
)

// lease is one that was granted. answer is what its settling was answered, nil where it
// was left open.
type lease struct {
	id     string
	answer *quorleasev1.SettleResponse
}

// settling takes tracked leases and settles three of four.
type settling struct {
	*faults
	crowd *crowd
	key   string
	under atomic.Int64

	mu     sync.Mutex
	leases []lease     // guarded by mu
	grants []bothTimes // guarded by mu
}

type bothTimes struct{ sent, answered time.Time }

func (s *settling) busy() int64 { return s.under.Load() }

func (s *settling) run(ctx, calls context.Context) {
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := w; pause(ctx, 5*time.Millisecond); i++ {
				s.one(calls, i, i%4 != 0)
			}
		})
	}
	workers.Wait()
}

func (s *settling) one(ctx context.Context, node int, settle bool) {
	l := lease{id: bench.NewID()}
	var times bothTimes
	answer, err := until(ctx, s.crowd, node, patience,
		func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.AcquireResponse, error) {
			times.sent = time.Now()
			return a.Acquire(ctx, s.acquire(l.id))
		})
	times.answered = time.Now()
	if err != nil || !granted(answer) || answer.GetLease().GetState() != quorleasev1.LeaseState_OPEN {
		s.add("G4: acquire %s: %v, %v; want an open lease", l.id, answer, err)
		return
	}
	if settle {
		s.under.Add(1)
		l.answer, err = until(ctx, s.crowd, node+1, patience, s.settle(l.id))
		s.under.Add(-1)
		if err != nil {
			s.add("G4: settle %s: %v", l.id, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases, s.grants = append(s.leases, l), append(s.grants, times)
}

func (s *settling) acquire(id string) *quorleasev1.AcquireRequest {
	return &quorleasev1.AcquireRequest{
		LeaseId: id, Track: true, Client: "settling", Charges: charge(exactLimit, s.key, "requests", leaseAmount),
	}
}

func (s *settling) settle(
	id string,
) func(context.Context, quorleasev1.AdmissionClient) (*quorleasev1.SettleResponse, error) {
	return func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.SettleResponse, error) {
		return a.Settle(ctx, &quorleasev1.SettleRequest{
			LeaseId: id, Used: []*quorleasev1.Usage{{Dimension: "requests", Used: leaseUsed}},
		})
	}
}

// grantedAfter is when the first grant was answered that was asked for after t.
func (s *settling) grantedAfter(t time.Time) (first time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		if g.sent.After(t) && (!ok || g.answered.Before(first)) {
			first, ok = g.answered, true
		}
	}
	return first, ok
}

// check asks for everything again: nothing is new, and the level says that nothing was
// taken twice or given back twice.
func (s *settling) check(ctx context.Context, c *crowd) int {
	var asking sync.WaitGroup
	want := int64(exactBurst)
	open := int64(0)
	rows := make(chan lease)
	for w := range 8 {
		asking.Go(func() {
			for l := range rows {
				s.again(ctx, c, w, l)
			}
		})
	}
	for _, l := range s.leases {
		if l.answer == nil {
			open++
			want -= leaseAmount
		} else {
			want -= leaseUsed
		}
		rows <- l
	}
	close(rows)
	asking.Wait()
	in, err := c.limits(0).Inspect(ctx, &quorleasev1.LimitsInspectRequest{Limit: exactLimit, Key: s.key})
	if err != nil {
		s.add("G4: inspect: %v", err)
		return len(s.leases)
	}
	if level := in.GetBuckets()[0].GetLevel(); level != want || in.GetOpenLeases() != open {
		s.add("G4: %d leases: the level is %d and %d are open, want %d and %d",
			len(s.leases), level, in.GetOpenLeases(), want, open)
	}
	return len(s.leases)
}

func (s *settling) again(ctx context.Context, c *crowd, node int, l lease) {
	answer, err := until(ctx, c, node, patience,
		func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.AcquireResponse, error) {
			return a.Acquire(ctx, s.acquire(l.id))
		})
	if err != nil || !granted(answer) || !answer.GetRepeatedRequest() {
		s.add("G4: acquire %s again: %v, %v; want the same grant", l.id, answer, err)
	}
	if l.answer == nil {
		return
	}
	settled, err := until(ctx, c, node, patience, s.settle(l.id))
	if err != nil || !settled.GetRepeatedRequest() {
		s.add("G4: settle %s again: %v, %v; want a repetition", l.id, settled, err)
		return
	}
	settled.RepeatedRequest = l.answer.GetRepeatedRequest()
	if !proto.Equal(settled, l.answer) {
		s.add("G4: settle %s again: %v, the first time %v", l.id, settled, l.answer)
	}
}
