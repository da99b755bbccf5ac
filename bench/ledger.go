package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// LedgerLimit never refills, so that its level counts every debit ever made.
const LedgerLimit = "ledger"

// LedgerBurst is its burst.
const LedgerBurst = 10_000_000

// Ledger takes tracked leases of one token and remembers which of them the
// authority acknowledged, so that a check from outside can say that each is
// there and none was debited twice (G4).
type Ledger struct {
	conns []*grpc.ClientConn

	mu sync.Mutex
	// acknowledged holds every id that was ever granted. Guarded by mu.
	acknowledged map[string]bool
	// unknown holds ids whose outcome nobody said. Guarded by mu.
	unknown map[string]bool
	// grants is when each answer came for a request sent at Sent. Guarded by mu.
	grants []Grant
}

// Grant is one acknowledged acquire by the caller's clock.
type Grant struct{ Sent, Answered time.Time }

// ConfigureLedger applies the limit.
func ConfigureLedger(ctx context.Context, address string) error {
	burst := int64(LedgerBurst)
	return ApplyLimit(ctx, address, &quorleasev1.Limit{
		Name: LedgerLimit,
		Dimensions: []*quorleasev1.Dimension{{
			Name:  "requests",
			Rate:  &quorleasev1.Rate{Amount: 0, Interval: durationpb.New(time.Minute)},
			Burst: &burst,
		}},
		Lease: durationpb.New(24 * time.Hour),
	})
}

// ApplyLimit applies one limit at a node and waits out an election.
func ApplyLimit(ctx context.Context, address string, limit *quorleasev1.Limit) error {
	conn, err := Dial(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = quorleasev1.NewLimitsClient(conn).Apply(attempt, &quorleasev1.LimitsApplyRequest{
			Limits: []*quorleasev1.Limit{limit},
		})
		cancel()
		if err == nil || !MayHaveHappened(err) {
			return err
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("apply limit %s: %w", limit.GetName(), err)
		}
	}
}

// OpenLedger connects to all nodes.
func OpenLedger(nodes *Nodes) (*Ledger, error) {
	l := &Ledger{acknowledged: map[string]bool{}, unknown: map[string]bool{}}
	for i := range nodes.Len() {
		conn, err := Dial(nodes.GRPC(i))
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.conns = append(l.conns, conn)
	}
	return l, nil
}

// Close closes the connections.
func (l *Ledger) Close() error {
	var errs []error
	for _, conn := range l.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// Run takes leases with as many callers, one every pace a caller, until ctx
// ends. A lease whose outcome is unknown is asked for again at the next node,
// with the same id.
func (l *Ledger) Run(ctx context.Context, callers int, pace time.Duration) {
	var joined sync.WaitGroup
	for c := range callers {
		joined.Go(func() {
			for node := c; ctx.Err() == nil; node++ {
				l.take(ctx, NewID(), node)
				_ = pause(ctx, pace)
			}
		})
	}
	joined.Wait()
}

// take asks for one lease until somebody answers or ctx ends.
func (l *Ledger) take(ctx context.Context, id string, node int) {
	l.mu.Lock()
	l.unknown[id] = true
	l.mu.Unlock()
	for ; ctx.Err() == nil; node++ {
		sent := time.Now()
		response, err := l.ask(ctx, id, node, 500*time.Millisecond)
		if err != nil {
			_ = pause(ctx, 5*time.Millisecond)
			continue
		}
		l.mu.Lock()
		delete(l.unknown, id)
		if response.GetDecision() == quorleasev1.Decision_GRANTED {
			l.acknowledged[id] = true
			l.grants = append(l.grants, Grant{Sent: sent, Answered: time.Now()})
		}
		l.mu.Unlock()
		return
	}
}

func (l *Ledger) ask(
	ctx context.Context, id string, node int, timeout time.Duration,
) (*quorleasev1.AcquireResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn := l.conns[node%len(l.conns)]
	return quorleasev1.NewAdmissionClient(conn).Acquire(ctx, &quorleasev1.AcquireRequest{
		LeaseId: id, Client: "ledger", Track: true,
		Charges: []*quorleasev1.Charge{{Limit: LedgerLimit, Dimension: "requests", Amount: 1}},
	})
}

// FirstGrantAfter is the first answer to a request that was sent after t.
func (l *Ledger) FirstGrantAfter(t time.Time) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var first time.Time
	for i := len(l.grants) - 1; i >= 0; i-- {
		grant := l.grants[i]
		if grant.Answered.Before(t) && grant.Sent.Before(t.Add(-10*time.Second)) {
			break
		}
		if grant.Sent.After(t) && (first.IsZero() || grant.Answered.Before(first)) {
			first = grant.Answered
		}
	}
	return first, !first.IsZero()
}

// GrantsAfter is how many leases were granted that were asked for after t.
func (l *Ledger) GrantsAfter(t time.Time) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, grant := range l.grants {
		if grant.Sent.After(t) {
			count++
		}
	}
	return count
}

// LongestGap is the longest time between from and to in which no lease was granted.
func (l *Ledger) LongestGap(from, to time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var answers []time.Time
	for i := len(l.grants) - 1; i >= 0 && l.grants[i].Answered.After(from.Add(-10*time.Second)); i-- {
		if at := l.grants[i].Answered; at.After(from) && at.Before(to) {
			answers = append(answers, at)
		}
	}
	answers = append(answers, to)
	slices.SortFunc(answers, time.Time.Compare)
	longest := time.Duration(0)
	for _, at := range answers {
		longest = max(longest, at.Sub(from))
		from = at
	}
	return longest
}

// Verify asks again for every acknowledged id: each must be known as a
// repetition. It settles what is unknown by asking again too. Then the level
// must be the burst less one token for each distinct lease.
func (l *Ledger) Verify(ctx context.Context) (leases int, err error) {
	l.mu.Lock()
	acknowledged, unknown := l.acknowledged, l.unknown
	l.acknowledged, l.unknown = map[string]bool{}, map[string]bool{}
	l.mu.Unlock()
	lost, err := l.verifyIDs(ctx, acknowledged, unknown)
	if err != nil {
		return 0, err
	}
	leases = len(acknowledged) + len(unknown)
	level, err := l.level(ctx)
	if err != nil {
		return leases, err
	}
	if lost > 0 || level != LedgerBurst-int64(leases) {
		return leases, fmt.Errorf("%d leases: %d acknowledged ones are lost; the level is %d, want %d",
			leases, lost, level, LedgerBurst-int64(leases))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range unknown {
		acknowledged[id] = true
	}
	l.acknowledged = acknowledged
	return leases, nil
}

// verifyMost is how many ids are asked for at a time.
const verifyMost = 16

// verifyIDs counts the acknowledged ids that are not known any more.
func (l *Ledger) verifyIDs(ctx context.Context, acknowledged, unknown map[string]bool) (lost int, err error) {
	ids := make(chan string)
	failed := make(chan error, verifyMost)
	var gone atomic.Int64
	var asking sync.WaitGroup
	for range verifyMost {
		asking.Go(func() {
			for id := range ids {
				known, err := l.isKnown(ctx, id)
				if err != nil {
					failed <- err
					return
				}
				if acknowledged[id] && !known {
					gone.Add(1)
				}
			}
		})
	}
	for _, id := range slices.Concat(slices.Collect(maps.Keys(acknowledged)), slices.Collect(maps.Keys(unknown))) {
		select {
		case ids <- id:
			continue
		case err = <-failed:
		}
		break
	}
	close(ids)
	asking.Wait()
	close(failed)
	for other := range failed {
		err = errors.Join(err, other)
	}
	return int(gone.Load()), err
}

// isKnown asks for one id again, and says whether it was known.
func (l *Ledger) isKnown(ctx context.Context, id string) (bool, error) {
	response, err := l.persist(ctx, id)
	if err != nil {
		return false, err
	}
	if response.GetDecision() != quorleasev1.Decision_GRANTED {
		return false, fmt.Errorf("lease %s: %v on asking again", id, response)
	}
	return response.GetRepeatedRequest(), nil
}

// persist asks for one id until somebody answers.
func (l *Ledger) persist(ctx context.Context, id string) (*quorleasev1.AcquireResponse, error) {
	for node := 0; ; node++ {
		response, err := l.ask(ctx, id, node, 2*time.Second)
		if err == nil || !MayHaveHappened(err) {
			return response, err
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return nil, fmt.Errorf("ask again for %s: %w", id, err)
		}
	}
}

// level is the ledger's level now.
func (l *Ledger) level(ctx context.Context) (int64, error) {
	var errs []error
	for _, conn := range l.conns {
		response, err := quorleasev1.NewLimitsClient(conn).Inspect(ctx,
			&quorleasev1.LimitsInspectRequest{Limit: LedgerLimit})
		if err == nil {
			return response.GetBuckets()[0].GetLevel(), nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("inspect %s: %w", LedgerLimit, errors.Join(errs...))
}
