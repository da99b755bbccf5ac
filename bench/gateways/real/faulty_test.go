package real_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/real"
	"github.com/quorlease/quorlease/bench/upstream"
)

// Times of the machine, which do not shrink with the scenario's.
const (
	// answerMax is how long a program may have to wait for an answer to what it sends, once:
	// the backlog waits in a queue.
	answerMax = 45 * time.Second
	// backMax is what a program waits at most beyond what it was told.
	backMax = time.Second
	// partedFor is how long a follower is cut off, and aloneFor gateways are without a quorum
	// once all of them know it.
	partedFor = 3 * time.Second
	aloneFor  = 2 * time.Second
)

// faulty is a stage on which something fails at a moment, with programs that do as they are
// told: whose gateway dies asks the next one, and who is told to come back does.
type faulty struct {
	*real.Stage
	gateways int
	// shares: gateways have parts of limits while nobody answers them.
	shares bool
	// dead is the number of the gateway that was killed, counted from 1, and keys counts what
	// was asked for.
	dead, keys atomic.Int64

	mu      sync.Mutex
	asked   []asked         // guarded by mu
	clients map[string]bool // guarded by mu
	served  map[served]bool // guarded by mu
	// from and until are when something was out of order.
	from, until time.Duration
	// quorum is when the last node that makes a majority was killed, alerted when the last
	// gateway has said so, and restarted when the nodes were started again.
	quorum, alerted, restarted time.Duration
	ledger                     upstream.Ledger
}

// served is who was served by which gateway.
type served struct {
	gateway int
	client  string
}

// isKnown says whether every gateway has served everybody: which limits somebody's work
// needs a gateway learns with the first grant, and decides by none of them before.
func (f *faulty) isKnown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.clients) > 1 && len(f.served) == len(f.clients)*f.gateways
}

// asked is what a program wanted, from when it sent it first until it had an answer.
type asked struct {
	client, key  string
	began, ended time.Duration
	// lost is how often its gateway died, and refused how often it had to come back.
	lost, refused int
	longest       time.Duration
	err           error
}

// Send sends what a program wants until there is an answer that does not say when to come
// back.
func (f *faulty) Send(ctx context.Context, number int, r gateways.Request) (answer gateways.Answer, err error) {
	one := asked{client: r.Header.Get("X-Client-Id"), began: f.Now()}
	f.mu.Lock()
	f.clients[one.client] = true
	f.mu.Unlock()
	one.key = strconv.FormatInt(f.keys.Add(1), 10)
	// Equal jobs may share an answer, which they don't under idempotency keys that differ.
	r.Header.Set("X-Request-Id", one.key)
	number %= f.gateways
	for {
		if int64(number) == f.dead.Load()-1 {
			number = (number + 1) % f.gateways
		}
		began := time.Now()
		once, cancel := context.WithTimeout(ctx, 2*answerMax)
		answer, err = f.Stage.Send(once, number, r)
		cancel()
		one.longest = max(one.longest, time.Since(began))
		if err != nil && int64(number) == f.dead.Load()-1 {
			one.lost++
			continue
		}
		wait, back := comesBack(answer, err)
		if !back {
			break
		}
		one.refused++
		if err = f.Sleep(ctx, time.Duration(f.Pace())*wait); err != nil {
			break
		}
	}
	one.ended, one.err = f.Now(), err
	f.mu.Lock()
	f.asked = append(f.asked, one)
	f.served[served{number, one.client}] = true
	f.mu.Unlock()
	return answer, err
}

// comesBack says whether an answer asks to come back, and after which time of the machine's.
func comesBack(a gateways.Answer, err error) (time.Duration, bool) {
	if err != nil || a.Status != http.StatusTooManyRequests && a.Status != http.StatusServiceUnavailable ||
		a.Header.Get("X-Should-Retry") == "false" {
		return 0, false
	}
	ms, err := strconv.Atoi(a.Header.Get("Retry-After-Ms"))
	if err != nil {
		ms = 1000
	}
	return time.Duration(ms)*time.Millisecond + rand.N(backMax), true
}

// fault is what goes wrong. It is over when it returns.
type fault struct {
	id string
	do func(ctx context.Context, f *faulty) error
	// apart: nodes need hosts of their own.
	apart bool
}

// The faults of A13.
var (
	leaderKilled   = fault{id: "S3-37_leader_killed", do: killLeader}
	followerParted = fault{id: "S3-37_follower_parted", do: partFollower, apart: true}
	gatewayKilled  = fault{id: "S2-01_gateway_killed_with_leases", do: killGateway}
	quorumLost     = fault{id: "S1-35_S1-36_quorum_lost", do: loseQuorum}
)

func killLeader(ctx context.Context, f *faulty) error {
	leader, err := f.Leader(ctx)
	if err != nil {
		return err
	}
	if err := f.KillNode(leader); err != nil {
		return err
	}
	if _, err := f.Leader(ctx); err != nil {
		return err
	}
	return f.StartNode(ctx, leader)
}

func partFollower(ctx context.Context, f *faulty) error {
	leader, err := f.Leader(ctx)
	if err != nil {
		return err
	}
	follower := (leader + 1) % 3
	if err := f.Cut(follower); err != nil {
		return err
	}
	return errors.Join(f.Sleep(ctx, time.Duration(f.Pace())*partedFor), f.Heal(follower))
}

func killGateway(_ context.Context, f *faulty) error {
	f.dead.Store(2)
	return f.KillGateway(1)
}

// loseQuorum kills two of three nodes, the leader first. A gateway that has come a moment ago
// has no part of a limit yet, and refuses everything.
func loseQuorum(ctx context.Context, f *faulty) error {
	if f.shares {
		if err := f.wait(ctx, func() bool { ok, err := f.Shared(ctx); return ok && err == nil }); err != nil {
			return fmt.Errorf("wait for the gateways' shares: %w", err)
		}
		f.from = f.Now()
	}
	leader, err := f.Leader(ctx)
	if err != nil {
		return err
	}
	other := (leader + 1) % 3
	if err := errors.Join(f.KillNode(leader), f.KillNode(other)); err != nil {
		return err
	}
	f.quorum = f.Now()
	if err := f.wait(ctx, func() bool { n, _ := f.Alerts(); return n >= f.gateways }); err != nil {
		return fmt.Errorf("wait for alerts of all gateways: %w", err)
	}
	_, f.alerted = f.Alerts()
	if err := f.Sleep(ctx, time.Duration(f.Pace())*aloneFor); err != nil {
		return err
	}
	f.restarted = f.Now()
	if err := errors.Join(f.StartNode(ctx, leader), f.StartNode(ctx, other)); err != nil {
		return err
	}
	err = f.wait(ctx, func() bool {
		raised, _ := f.Alerts()
		over, _ := f.Cleared()
		return over == raised
	})
	if err != nil {
		return fmt.Errorf("wait for the end of all alerts: %w", err)
	}
	return nil
}

// wait waits for a condition for a minute of the machine's at most.
func (f *faulty) wait(ctx context.Context, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !holds() {
		if err := f.Sleep(ctx, time.Duration(f.Pace())*10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// twice is how many calls came to the provider that it had seen before, of programs whose
// gateway lived.
func (f *faulty) twice() (n int) {
	may := make(map[string]int, len(f.asked))
	for i := range f.asked {
		may[f.asked[i].key] = 1 + f.asked[i].lost
	}
	for i := range f.ledger.Calls {
		if key := f.ledger.Calls[i].Key; may[key] > 0 {
			may[key]--
		} else {
			n++
		}
	}
	return n
}

// house is where a fault happens at a moment. The setting is changed before.
func house(
	c real.Config, part float64, at time.Duration, what fault, change func(*gateways.Setting),
) (*gateways.House, *faulty) {
	f := &faulty{clients: map[string]bool{}, served: map[served]bool{}}
	h := real.House(c, 1, part, func(s *real.Stage) { f.Stage = s })
	inner := h.Open
	h.Open = func(ctx context.Context, setting *gateways.Setting) (gateways.Stage, func() error, error) {
		changed := *setting
		change(&changed)
		f.gateways, f.shares = changed.Gateways, strings.Contains(changed.Limits, "on_quorum_loss: share")
		_, end, err := inner(ctx, &changed)
		if err != nil {
			return nil, nil, err
		}
		done := make(chan error, 1)
		go func() {
			if err := errors.Join(f.Sleep(ctx, at), f.wait(ctx, f.isKnown)); err != nil {
				done <- err
				return
			}
			f.from = f.Now()
			err := what.do(ctx, f)
			f.until = f.Now()
			done <- err
		}()
		return f, func() error {
			err := <-done
			f.ledger = f.Provider().Ledger()
			return errors.Join(err, end())
		}, nil
	}
	return h, f
}

// over is by how much calls went beyond a bucket: of any stretch of time, the most that was
// used beyond its rate a minute and its burst (G1).
func over(calls []upstream.Call, amount func(*upstream.Call) int64, perMinute, burst float64) float64 {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b upstream.Call) int { return cmp.Compare(a.Arrived, b.Arrived) })
	level, most, last := 0.0, 0.0, time.Duration(0)
	for i := range calls {
		level = max(0, level-perMinute*(calls[i].Arrived-last).Minutes()) + float64(amount(&calls[i]))
		most, last = max(most, level), calls[i].Arrived
	}
	return max(0, most-burst)
}

// atOnce is the most calls that were under way together.
func atOnce(calls []upstream.Call) (most int) {
	type step struct {
		at   time.Duration
		more int
	}
	var steps []step
	for i := range calls {
		steps = append(steps, step{calls[i].Arrived, 1}, step{calls[i].Ended, -1})
	}
	// Who goes makes room for who comes.
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	now := 0
	for _, s := range steps {
		now += s.more
		most = max(most, now)
	}
	return most
}

// in are the calls that arrived in a stretch of time.
func in(calls []upstream.Call, from, until time.Duration) (n int) {
	for i := range calls {
		if calls[i].Arrived >= from && calls[i].Arrived < until {
			n++
		}
	}
	return n
}
