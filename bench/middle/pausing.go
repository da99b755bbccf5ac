package middle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// pauseLength is what a provider asks to wait: longer than a round.
const pauseLength = 2 * time.Minute

// paused is a key whose pause was acknowledged, and when it was first reported.
type paused struct {
	key  string
	sent time.Time
}

// pausing reports that keys are throttled, each once.
type pausing struct {
	*faults
	crowd *crowd
	key   string
	under atomic.Int64
	// hurry makes everybody report one key after the other, around the kill.
	hurry atomic.Bool

	mu   sync.Mutex
	keys []paused // guarded by mu
}

func (p *pausing) busy() int64 { return p.under.Load() }

func (p *pausing) run(ctx, calls context.Context) {
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				p.one(calls, fmt.Sprintf("%s-%d-%d", p.key, w, i), w+i)
				for ms := 0; ms < 100 && !p.hurry.Load() && pause(ctx, time.Millisecond); ms++ {
				}
			}
		})
	}
	workers.Wait()
}

// one reports, and asks another node at once.
func (p *pausing) one(ctx context.Context, key string, node int) {
	k := paused{key: key, sent: time.Now()}
	p.under.Add(1)
	answer, err := until(ctx, p.crowd, node, patience,
		func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.ReportResponse, error) {
			return a.Report(ctx, &quorleasev1.ReportRequest{Client: "pausing", Feedback: []*quorleasev1.Feedback{{
				Kind: quorleasev1.Feedback_THROTTLED, Limit: pausedLimit, Key: key, Wait: durationpb.New(pauseLength),
			}}})
		})
	p.under.Add(-1)
	if err != nil || len(answer.GetControlled()) != 1 || answer.GetControlled()[0].GetGone() {
		p.add("pausing: report of %s: %v, %v", key, answer, err)
		return
	}
	p.holds(ctx, p.crowd, node+1, k)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, k)
}

// holds wants a key to be closed for as long as its provider asked. It never ends
// before: a new leader's clock goes on no faster than anybody's.
func (p *pausing) holds(ctx context.Context, c *crowd, node int, k paused) {
	answer, err := until(ctx, c, node, patience,
		func(ctx context.Context, a quorleasev1.AdmissionClient) (*quorleasev1.AcquireResponse, error) {
			return a.Acquire(ctx, &quorleasev1.AcquireRequest{
				Client: "pausing", Charges: charge(pausedLimit, k.key, "requests", 1),
			})
		})
	if err != nil || reason(answer) != quorleasev1.Reason_PAUSED {
		p.add("pausing: %s, which is paused, at node %d: %v, %v", k.key, node, answer, err)
		return
	}
	least := pauseLength - time.Since(k.sent) - time.Second
	if left := answer.GetDenials()[0].GetRetryAfter().AsDuration(); left < least {
		p.add("pausing: %s is closed for %v, want at least %v", k.key, left, least)
	}
}

// check asks every node for every key.
func (p *pausing) check(ctx context.Context, c *crowd) int {
	var asking sync.WaitGroup
	for i := range c.conns {
		asking.Go(func() {
			for _, k := range p.keys {
				p.holds(ctx, c, i, k)
			}
		})
	}
	asking.Wait()
	return len(p.keys)
}
