package charge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/clock"
	"github.com/quorlease/quorlease/client/failopen"
)

// The reasons of a retry budget, as the authority spells them.
const (
	reasonBudget   = "RETRY_BUDGET"
	reasonAttempts = "ATTEMPTS"
)

// Desk charges calls. It is safe for concurrent use. Make one with New, and Close it
// before the client that it asks.
type Desk struct {
	config Config
	clock  *clock.Clock
	plans  *plans
	taps   *taps
	overs  *overs
	times  *timetable
	counts counts

	// fills are taps that want a first block, jobs leases that are to be told of.
	fills chan *tap
	jobs  chan job

	// helpers end when stop is called, workers when closing is closed and nothing waits, or
	// when quit is called.
	stop, quit       context.CancelFunc
	helpers, workers sync.WaitGroup
	closing          chan struct{}
	once             sync.Once

	closed atomic.Bool
	// handing is held for reading by whoever hands something to the workers.
	handing sync.RWMutex
}

// counts are what Stats says, as they grow.
type counts struct {
	permits, asked, learned, short, overBudget, local atomic.Uint64
	settled, renewed, unanswered, dropped, lost, late atomic.Uint64
	abandoned                                         atomic.Uint64
	leases                                            atomic.Int64
}

// Stats are what a desk has done since it was made, and what it holds.
type Stats struct {
	// Permits counts calls that were paid from what is held, and Asked those that asked the
	// authority, whatever it said.
	Permits, Asked uint64
	// Learned counts plans that were made or made anew.
	Learned uint64
	// Short counts calls that asked because what is held was not enough, OverBudget those that
	// this desk refused for their client's retry budget, Local those that were granted because
	// nobody answered.
	Short, OverBudget, Local uint64
	// Settled counts leases whose end was told, and Renewed renewals.
	Settled, Renewed uint64
	// Unanswered counts settlements and renewals that nobody answered and that were tried once
	// more; Dropped settlements for which there was no room, or no time at the end; and Lost
	// those that failed. Their leases end by themselves.
	Unanswered, Dropped, Lost uint64
	// Late counts tokens that were not used, and could not come back because their block had
	// ended before the call: a longer `lease` of the limit keeps it open.
	Late uint64
	// Abandoned counts calls that did not end within Config.CallMax.
	Abandoned uint64
	// Plans, Limiters and Leases are how many there are, the latter of calls that go on, and
	// Waiting how many leases are to be told of or renewed.
	Plans, Limiters, Leases, Waiting int
}

// New returns a desk. The error names everything that is out of range.
func New(c Config) (*Desk, error) {
	c.defaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("charge configuration: %w", err)
	}
	d := &Desk{
		config: c, clock: clock.New(), plans: newPlans(c.Plans), taps: newTaps(c.Limiters), overs: newOvers(),
		times: newTimetable(), fills: make(chan *tap, fillsMax), jobs: make(chan job, c.Settlements),
		closing: make(chan struct{}),
	}
	helping, stop := context.WithCancel(context.Background())
	working, quit := context.WithCancel(context.Background())
	d.stop, d.quit = stop, quit
	for range fillers {
		d.helpers.Go(func() { d.filler(helping) })
	}
	d.helpers.Go(func() { d.sweeper(helping) })
	d.helpers.Go(func() { d.times.run(helping, d.clock.Now, d.hand) })
	for range c.Workers {
		d.workers.Go(func() { d.worker(working) })
	}
	return d, nil
}

// Take charges a call. The charge is nil where it is denied, and the decision says why: it
// is the authority's, of its retry budget maybe this gateway's own. The error is that of
// client.Client.Acquire, or client.ErrClosed.
//
// Where a block is on its way it waits for that, 200 ms at most, whatever becomes of ctx.
//
// A call that was paid from what is held has a decision of the source Escrow, since that
// was debited before, or Local, where nobody answered; its lease is empty.
func (d *Desk) Take(ctx context.Context, w Work) (*Charge, *client.Decision, error) {
	if d.closed.Load() {
		return nil, nil, client.ErrClosed
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, nil, ctx.Err()
	}
	// S1-03: who is over its budget here costs nobody a question, whatever is held, unless
	// the authority may admit it.
	asks := false
	if !w.Again && w.Attempt > 0 {
		v := d.config.Authority.TriesOf(w.Client).Consider(w.Attempt)
		if !v.Admit && !v.Ask {
			return nil, d.overBudget(v), nil
		}
		asks = v.Ask
	}
	now := d.clock.Now()
	sum := d.plans.sum(&w)
	p := d.plans.find(now, sum, &w)
	if p == nil || now >= p.end || p.stale.Load() {
		return d.ask(ctx, &w, question{sum: sum, old: p, learn: true})
	}
	if now >= p.until && !p.asking.Swap(true) {
		defer p.asking.Store(false)
		return d.ask(ctx, &w, question{sum: sum, old: p, learn: true})
	}
	if asks || len(p.parts) == 0 || d.overs.has(now, w.Client) || d.config.Authority.FailOpen() {
		return d.ask(ctx, &w, question{sum: sum, old: p})
	}
	if c, decision := d.pay(now, p, &w); decision != nil {
		return c, decision, nil
	}
	return d.ask(ctx, &w, question{sum: sum, old: p})
}

// pay pays for a call from what is held. The decision is nil where that is not enough.
//
// The retry budget comes before the tokens, but counts only what goes ahead (S1-28): Take
// has looked at it, and it is asked when the tokens are there. So a call that asks the
// authority after all, which counts it, was not counted here.
func (d *Desk) pay(now time.Duration, p *plan, w *Work) (*Charge, *client.Decision) {
	if !d.isReady(now, p, w) {
		return nil, nil
	}
	c := &Charge{desk: d}
	if !c.take(now, p, w) {
		d.counts.short.Add(1)
		return nil, nil
	}
	if !w.Again {
		if v := d.config.Authority.TriesOf(w.Client).Permit(w.Attempt); !v.Admit {
			c.giveBack()
			if v.Ask {
				return nil, nil
			}
			return nil, d.overBudget(v)
		}
	}
	d.counts.permits.Add(1)
	if c.decision.Source == client.Local {
		d.counts.local.Add(1)
	}
	return c, &c.decision
}

// isReady says whether all limits of a plan hold something. Of those that do not but are
// often wanted a first block is asked for in the background.
func (d *Desk) isReady(now time.Duration, p *plan, w *Work) bool {
	ready := true
	for _, t := range p.parts {
		n := w.amount(t.dimension)
		if n < 1 || n > amountMax {
			return false
		}
		if t.gone.Load() {
			p.stale.Store(true)
			return false
		}
		touch(&t.used, now)
		if t.isWarm(now) {
			continue
		}
		ready = false
		if t.isWanted(now, d.config.Busy) {
			d.fill(t, n)
		}
	}
	return ready
}

// overBudget is the answer to a call that this desk refuses.
func (d *Desk) overBudget(v failopen.Verdict) *client.Decision {
	d.counts.overBudget.Add(1)
	reason := reasonBudget
	if v.Reason == failopen.Attempts {
		reason = reasonAttempts
	}
	return &client.Decision{Source: client.Local, Denials: []client.Denial{{
		Reason: reason, RetryAfter: v.RetryAfter, Never: v.Never, FreesIn: v.FreesIn,
	}}}
}

// Close ends every goroutine, gives back what limiters hold and tells how calls have
// ended, within Config.CloseWithin and the client's own. Charges that have not ended by
// then are charged in full, and give their slots back when their leases end. It is
// idempotent.
func (d *Desk) Close() error {
	d.once.Do(func() {
		d.handing.Lock()
		d.closed.Store(true)
		d.handing.Unlock()
		d.stop()
		timer := time.AfterFunc(d.config.CloseWithin, d.quit)
		defer timer.Stop()
		d.shutAll()
		d.helpers.Wait()
		// Those that are to be told once more have to be told now.
		for _, l := range d.times.untold() {
			select {
			case d.jobs <- job{lease: l}:
			default:
				d.counts.dropped.Add(1)
			}
		}
		close(d.closing)
		d.workers.Wait()
		d.quit()
		d.counts.dropped.Add(uint64(len(d.times.untold())))
	})
	return nil
}

// Stats are the figures now.
func (d *Desk) Stats() Stats {
	n := &d.counts
	return Stats{
		Permits: n.permits.Load(), Asked: n.asked.Load(), Learned: n.learned.Load(), Short: n.short.Load(),
		OverBudget: n.overBudget.Load(), Local: n.local.Load(), Settled: n.settled.Load(), Renewed: n.renewed.Load(),
		Unanswered: n.unanswered.Load(), Dropped: n.dropped.Load(), Lost: n.lost.Load(), Late: n.late.Load(),
		Abandoned: n.abandoned.Load(), Plans: d.plans.len(), Limiters: int(d.taps.open.Load()),
		Leases: int(n.leases.Load()), Waiting: len(d.jobs),
	}
}
