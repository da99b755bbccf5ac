package gate

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/client/report"
)

// Admitted is a call that was let through, until it ends. Its methods are safe for concurrent
// use.
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

type admittedKey struct{}

// FromContext is the call that a handler answers, from the handler's context; nil where there is
// no gate before it.
func FromContext(ctx context.Context) *Admitted {
	a, _ := ctx.Value(admittedKey{}).(*Admitted)
	return a
}

func (a *Admitted) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, admittedKey{}, a)
}
