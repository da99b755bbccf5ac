package disturb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/check"
	"github.com/quorlease/quorlease/bench/stat"
	"github.com/quorlease/quorlease/client"
)

const (
	dimension = "requests"
	// limitLease is the life of a lease of the limits.
	limitLease = 2 * time.Second
	// underwayMost is how many questions of a stream may be under way: what nobody
	// answers must end somewhere.
	underwayMost = 50_000
)

// stream is questions about one limit that come whether or not others were answered.
type stream struct {
	limit string
	keys  []string
	// perSecond is how many come, over all keys; rate and burst are each key's.
	perSecond   float64
	rate, burst int64
	// exact: every grant is an entry's. tracked: every lease has an id.
	exact, tracked bool
	// patience is how long a caller waits.
	patience time.Duration
	clients  []*client.Client
	history  *history

	underway atomic.Int64
	joined   sync.WaitGroup
}

func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "key-" + strconv.Itoa(i)
	}
	return names
}

// spec is what bounds each key. Clocks may differ by a thousandth.
func (s *stream) spec() check.Spec {
	return check.Spec{Amount: s.rate, Interval: int64(time.Second), TargetBP: 10_010, Burst: s.burst}
}

// apply applies the limit, and waits out an election.
func (s *stream) apply(ctx context.Context, nodes *bench.Nodes) error {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	for {
		err := s.applyAt(ctx, nodes)
		if err == nil || !bench.MayHaveHappened(err) || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

func (s *stream) applyAt(ctx context.Context, nodes *bench.Nodes) error {
	leader, err := nodes.Leader(ctx)
	if err != nil {
		return err
	}
	conn, err := nodes.Conn(leader)
	if err != nil {
		return err
	}
	defer conn.Close()
	attempt, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	keys := int64(len(s.keys))
	limits := quorleasev1.NewLimitsClient(conn)
	_, err = limits.Apply(attempt, &quorleasev1.LimitsApplyRequest{Limits: []*quorleasev1.Limit{{
		Name: s.limit, Per: []string{"key"}, MaxKeys: &keys, Exact: s.exact, Lease: durationpb.New(limitLease),
		OnQuorumLoss: quorleasev1.FallbackMode_CLOSED_ON_LOSS,
		Dimensions: []*quorleasev1.Dimension{{
			Name: dimension, Burst: &s.burst, MaxOpen: &s.rate,
			Rate: &quorleasev1.Rate{Amount: s.rate, Interval: durationpb.New(time.Second)},
		}},
	}}})
	if err != nil {
		return fmt.Errorf("apply limit %s: %w", s.limit, err)
	}
	return nil
}

// run asks until ctx ends. Whatever is under way then is answered within patience; see
// wait.
func (s *stream) run(ctx context.Context, seed uint64) error {
	source := rand.NewPCG(seed, 0)
	//nolint:gosec // Who is asked for what is no secret.
	random := rand.New(source)
	schedule, err := stat.NewSchedule(stat.Poisson, s.perSecond, 1, 0, source)
	if err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	began := time.Now()
	for number := uint64(0); ctx.Err() == nil; number++ {
		intended := began.Add(schedule.Next())
		if wait := time.Until(intended); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return nil
			}
		}
		key := random.IntN(len(s.keys))
		if s.underway.Load() >= underwayMost {
			at := s.history.since(intended)
			s.history.note(number, record{intended: at, answered: at, key: uint16(key), outcome: failed})
			continue
		}
		s.underway.Add(1)
		s.joined.Go(func() {
			s.ask(ctx, number, key, intended)
			s.underway.Add(-1)
		})
	}
	return nil
}

// wait waits for what is under way.
func (s *stream) wait() { s.joined.Wait() }

// ask asks one question of the client whose turn it is.
func (s *stream) ask(ctx context.Context, number uint64, key int, intended time.Time) {
	sent := time.Now()
	// What was asked when the run ended is to be answered all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
	defer cancel()
	request := client.Request{
		Track:   s.tracked,
		Charges: []client.Charge{{Limit: s.limit, Key: s.keys[key], Dimension: dimension, Amount: 1}},
	}
	if s.tracked {
		request.LeaseID = bench.NewID()
	}
	decision, err := s.clients[number%uint64(len(s.clients))].Acquire(ctx, request)
	answered := time.Now()
	r := record{
		intended: s.history.since(intended), answered: s.history.since(answered),
		late: uint32(min(sent.Sub(intended).Microseconds(), 1<<31)), key: uint16(key),
	}
	switch {
	case err != nil:
		r.outcome = failed
	case decision.Source == client.Local:
		r.outcome = alone
	case !decision.Granted:
		r.outcome = denied
	default:
		if r.outcome = byEntry; decision.Source == client.Escrow {
			r.outcome = fromEscrow
		}
		r.ends = s.history.since(decision.Lease.Ends)
		if s.tracked {
			s.history.acknowledge(request.LeaseID)
		}
	}
	s.history.note(number, r)
}
