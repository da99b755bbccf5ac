package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
)

// lossRun counts what became of the calls of one mode.
type lossRun struct {
	limit                           string
	issued, answered, failed, local atomic.Int64
	mu                              sync.Mutex
	// localAt are when answers were given locally, decided the calls that the
	// authority answered.
	localAt []time.Time // guarded by mu
	decided []span      // guarded by mu
	// stood is when this process stood still.
	stood []span // guarded by mu
}

// loop calls about five hundred times a second where it is answered at once, as
// it is locally.
func (r *lossRun) loop(ctx context.Context, c *client.Client) {
	for pause(ctx, 2*time.Millisecond) == nil {
		r.issued.Add(1)
		began := time.Now()
		d, err := c.Acquire(context.Background(), client.Request{
			Charges: []client.Charge{{Limit: r.limit, Dimension: "requests", Amount: 1}},
		})
		r.answered.Add(1)
		switch {
		case err != nil || !d.Granted:
			r.failed.Add(1)
		case d.Source == client.Local:
			r.local.Add(1)
			r.note(span{began, time.Now()}, true)
		default:
			r.note(span{began, time.Now()}, false)
		}
	}
}

func (r *lossRun) note(call span, local bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if local {
		r.localAt = append(r.localAt, call.to)
	} else {
		r.decided = append(r.decided, call)
	}
}

// span is a stretch of time.
type span struct{ from, to time.Time }

// contains includes both ends.
func (s span) contains(at time.Time) bool { return !at.Before(s.from) && !at.After(s.to) }

// stall is how late a timer may be on a machine that goes on.
const stall = 20 * time.Millisecond

// standstill notes when this process stood still, until ctx ends. Callers who wait for
// answers together are all between two calls at times, and would not show it.
func (r *lossRun) standstill(ctx context.Context) {
	const step = 5 * time.Millisecond
	for began := time.Now(); pause(ctx, step) == nil; began = time.Now() {
		if now := time.Now(); now.Sub(began) > step+stall {
			r.mu.Lock()
			r.stood = append(r.stood, span{began, now})
			r.mu.Unlock()
		}
	}
}

// slowness is when the authority took longer than most for what it decided, or this process
// stood still, and for how long a client may then go on alone before it has noticed that
// this is over.
func (r *lossRun) slowness(most, notice time.Duration) (found []span) {
	for _, call := range r.decided {
		if call.to.Sub(call.from) > most {
			found = append(found, span{call.from, call.to.Add(notice)})
		}
	}
	for _, s := range r.stood {
		found = append(found, span{s.from, s.to.Add(notice)})
	}
	return found
}
