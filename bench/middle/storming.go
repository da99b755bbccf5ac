package middle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
)

const (
	stormClients = "storm-"
	// By the budget's defaults a client that only retries may do so 51 times, and each
	// of three nodes admits a third of that before it has heard of the others (G12).
	ruleAdmits  = 51
	nodesAdmit  = 3 * 17
	timesOver   = 30
	stormCaller = 3
)

// storming is a client that retries everything through all nodes.
type storming struct {
	*faults
	crowd  *crowd
	client string
	// admitted were granted, unclear are those that nobody answered. row is how many
	// refusals came one after the other that say that it is over its budget.
	admitted, unclear, row atomic.Int64
	// outburst is what was sent at the kill.
	outburst sync.WaitGroup
}

func (s *storming) busy() int64 { return s.admitted.Load() }

// over says whether every node has refused it again and again.
func (s *storming) over() bool { return s.row.Load() >= timesOver }

func (s *storming) run(ctx, calls context.Context) {
	var workers sync.WaitGroup
	for w := range stormCaller {
		workers.Go(func() {
			for i := w; pause(ctx, 20*time.Millisecond); i++ {
				s.one(calls, i)
			}
		})
	}
	workers.Wait()
}

// burst sends as many as would get by if each node knew of itself only. It does not
// wait for them: join does.
func (s *storming) burst(ctx context.Context) {
	for i := range 3 * ruleAdmits {
		s.outburst.Go(func() { s.one(ctx, i) })
	}
}

func (s *storming) join() { s.outburst.Wait() }

func (s *storming) one(ctx context.Context, i int) {
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := s.retry(attempt, s.crowd, i, uint32(1+i%3)) //nolint:gosec // 1 to 3
	switch {
	case err != nil:
		s.unclear.Add(1)
	case granted(answer):
		s.admitted.Add(1)
		s.row.Store(0)
	case reason(answer) != quorleasev1.Reason_RETRY_BUDGET:
		s.add("storm: a retry is refused as %v", reason(answer))
	case answer.GetDenials()[0].GetFreesIn() == nil:
		s.row.Store(0)
	default:
		s.row.Add(1)
	}
}

func (s *storming) retry(
	ctx context.Context, c *crowd, node int, attempt uint32,
) (*quorleasev1.AcquireResponse, error) {
	return c.admission(node).Acquire(ctx, &quorleasev1.AcquireRequest{
		LeaseId: bench.NewID(), Track: true, Client: s.client, Attempt: attempt,
		Charges: charge(exactLimit, s.client, "requests", 1),
	})
}

// check counts what was granted by what is gone of the limit, so that it knows of those
// too that nobody answered. Every node has to refuse the client, whatever it asks.
func (s *storming) check(ctx context.Context, c *crowd) int {
	in, err := c.limits(2).Inspect(ctx, &quorleasev1.LimitsInspectRequest{Limit: exactLimit, Key: s.client})
	if err != nil {
		s.add("G12: inspect: %v", err)
		return 0
	}
	taken := exactBurst - in.GetBuckets()[0].GetLevel()
	told, unclear := s.admitted.Load(), s.unclear.Load()
	if taken < told || taken > ruleAdmits+nodesAdmit || taken+unclear < ruleAdmits {
		s.add("G12: %d retries were granted, %d by answers and %d had none, want %d to %d",
			taken, told, unclear, ruleAdmits, ruleAdmits+nodesAdmit)
	}
	for i := range c.conns {
		answer, err := s.retry(ctx, c, i, 0)
		if err != nil || reason(answer) != quorleasev1.Reason_RETRY_BUDGET {
			s.add("G12: %s, which is over its budget, at node %d: %v, %v", s.client, i, answer, err)
		}
	}
	return int(taken)
}
