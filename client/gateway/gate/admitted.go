package gate

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/client/report"
)

// Admitted is a call that was let through, until it ends. Its methods are safe for concurrent
// use, and do nothing where it is nil.
type Admitted struct {
	Who who.Identity
	// Attempt is how many retries were made before it, 0 first.
	Attempt uint32
	// Decision let it through. Nil: it was charged nothing. Its Source is client.Local where
	// nobody answered.
	Decision *client.Decision

	gate   *Gate
	call   attempt.Call
	charge *charge.Charge

	mu   sync.Mutex
	used map[string]int64 // guarded by mu
}

// Used says what the call has used so far, by dimension, each 0 to 2^53; the last word counts.
// What is not named when it ends was used as it was charged.
func (a *Admitted) Used(used map[string]int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used == nil {
		a.used = make(map[string]int64, len(used))
	}
	maps.Copy(a.used, used)
}

// Throttled says that whoever does the work has refused it, and asks to wait. For so long
// calls that are charged the same limits are not paid from what is held, and the client is
// shown as one that was throttled.
func (a *Admitted) Throttled(wait time.Duration) {
	if a == nil {
		return
	}
	a.gate.config.Authority.TriesOf(a.Who.Client).Done(report.Outcome{Throttled: true, Error: "throttled"})
	if a.charge != nil {
		a.charge.Throttled(wait)
	}
}

// end settles, and remembers how the attempt ended.
func (a *Admitted) end(outcome attempt.Outcome) {
	a.call.End(a.gate.now(), outcome)
	if a.charge == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.charge.Settle(a.used)
}

type placeKey struct{}

// place is where a context has the call: it may be made before that is let through.
type place struct{ admitted atomic.Pointer[Admitted] }

func (p *place) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// FromContext is the call that a handler answers, from the handler's context; nil where there is
// no gate before it, and before the call is let through.
func FromContext(ctx context.Context) *Admitted {
	p, _ := ctx.Value(placeKey{}).(*place)
	if p == nil {
		return nil
	}
	return p.admitted.Load()
}

func (a *Admitted) within(ctx context.Context) context.Context {
	p := new(place)
	p.admitted.Store(a)
	return p.within(ctx)
}
