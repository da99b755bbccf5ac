package waiting

import (
	"sync"
	"sync/atomic"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Config says what a Desk stands between. All of it is required. The functions
// must not block.
type Config struct {
	Door *door.Door
	// View calls a function with the node's replica and the time to read with.
	View func(read func(*fsm.Machine, bucket.Instant))
	// Propose takes items for the next entry, one right behind the other. It
	// returns false, and takes none, when the node does not serve as the leader.
	Propose func(...*door.Item) bool
	// Reroute sends an item that was not proposed on its way again.
	Reroute func(*door.Item)
	// Leaderless says why nobody decides.
	Leaderless func() error
	// Elapsed is the node's own steady clock.
	Elapsed func() time.Duration
	// Denied hears of each denial that the desk gives.
	Denied func(*logv1.AcquireResult)
	// FlightMax bounds how long the desk waits for the fate of what it proposed.
	FlightMax time.Duration
	// Bounds are those of the queue.
	Bounds queue.Config
}

// Desk is one node's waiting room. It waits for whoever is there; while the node
// serves as the leader it lets acquires wait. Safe for concurrent use.
type Desk struct {
	config Config
	wake   chan struct{}
	// waiting is how many wait, for those who want no lock where nobody does.
	waiting atomic.Int64

	mu struct {
		sync.Mutex
		leads bool
		queue *queue.Queue
		terms map[string]*queue.Terms
		// waiters are those in the queue, and those whose first flight is under way.
		waiters map[*door.Item]*waiter
		// flying are the flights with a lease id, fresh those of acquires that are not
		// in the queue.
		flying map[string]*flight
		fresh  map[*flight]struct{}
		// held wait for a leader, until they are sent on their way again.
		held   map[*door.Item]struct{}
		heldAt time.Duration
	}
}

// New returns a desk. Run serves it.
func New(c Config) *Desk {
	d := &Desk{config: c, wake: make(chan struct{}, 1)}
	d.mu.queue = queue.New(c.Bounds)
	d.mu.waiters = make(map[*door.Item]*waiter)
	d.mu.flying = make(map[string]*flight)
	d.mu.fresh = make(map[*flight]struct{})
	d.mu.held = make(map[*door.Item]struct{})
	return d
}

// waiter is one acquire that waits.
type waiter struct {
	queue.Waiter
	item    *door.Item
	acquire *logv1.Acquire
	// came is what it found when it came to the queue, where it has.
	came   queue.Status
	queued bool
	// flight is what is proposed for it, if anything.
	flight *flight
	// stranded: the node that sent it can't be reached, and may ask again.
	stranded bool
	// last is the latest denial, and lastAt when it was.
	last   *logv1.AcquireResult
	lastAt time.Duration
}

// actions are what to do without the lock: all of it may call the desk.
type actions struct {
	answers []answer
	flights []*flight
	reroute []*door.Item
}

type answer struct {
	item   *door.Item
	result *logv1.Result
	err    error
	// flight is what won it, where that is a grant.
	flight *flight
}

func (a *actions) answer(it *door.Item, result *logv1.AcquireResult) {
	a.answers = append(a.answers, answer{item: it, result: wrapped(result)})
}

func wrapped(result *logv1.AcquireResult) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: result}}
}

func (d *Desk) do(a *actions) {
	if len(a.flights) > 0 {
		d.propose(a.flights)
	}
	for _, one := range a.answers {
		if decided := one.result.GetAcquire(); decided != nil && !decided.GetGranted() {
			d.config.Denied(decided)
		}
		mine := d.config.Door.Answer(one.item, one.result, one.err)
		if one.flight != nil {
			d.forget(one.flight, mine)
		}
	}
	for _, it := range a.reroute {
		d.config.Reroute(it)
	}
}

// Lead lets acquires wait here: the node serves as the leader.
func (d *Desk) Lead() {
	d.mu.Lock()
	d.mu.leads = true
	d.mu.heldAt = 0
	d.mu.Unlock()
	d.nudge()
}

// Drop empties the queue and sends everybody on: a queue must not survive its
// leadership (T25). What is under way is waited for.
func (d *Desk) Drop() {
	var a actions
	d.mu.Lock()
	d.mu.leads = false
	for _, one := range d.mu.queue.Drain() {
		w := one.Owner.(*waiter)
		if w.flight == nil {
			d.removeLocked(w)
			a.reroute = append(a.reroute, w.item)
		}
	}
	d.mu.Unlock()
	d.do(&a)
}

// Configure says which limits there are.
func (d *Desk) Configure(limits []*logv1.Limit) {
	terms := make(map[string]*queue.Terms, len(limits))
	for _, limit := range limits {
		terms[limit.GetName()] = termsOf(limit)
	}
	d.mu.Lock()
	d.mu.terms = terms
	d.mu.queue.Configure(d.config.Elapsed(), terms)
	d.mu.Unlock()
	d.nudge()
}

// Applied tells of an entry that was applied: what it gave back, or changed, may
// be what somebody waits for.
func (d *Desk) Applied(results []*logv1.Result, effects []effect.Effect) {
	if d.waiting.Load() == 0 {
		return
	}
	d.mu.Lock()
	now := d.config.Elapsed()
	for _, r := range results {
		for _, s := range r.GetLease().GetSettlements() {
			d.mu.queue.Wake(now, queue.Place{Limit: s.GetLimit(), Key: s.GetKey()})
		}
	}
	for _, e := range effects {
		switch {
		case e.Kind == effect.WindowRolled:
			d.mu.queue.WakeLimit(now, e.Limit)
		case e.Limit != "":
			d.mu.queue.Wake(now, queue.Place{Limit: e.Limit, Key: e.Key})
		}
	}
	due, ok := d.mu.queue.NextDue()
	d.mu.Unlock()
	if ok && due <= now {
		d.nudge()
	}
}

// Withdraw implements door.Withdrawer: the door has ended an item that the desk
// holds, or one that waits for a leader.
func (d *Desk) Withdraw(it *door.Item) {
	d.mu.Lock()
	delete(d.mu.held, it)
	if w := d.mu.waiters[it]; w != nil {
		d.mu.queue.Cancel(d.config.Elapsed(), &w.Waiter)
		if w.flight == nil {
			d.removeLocked(w)
		}
	}
	d.mu.Unlock()
	d.nudge()
}

// Strand says that the node which sent an item can't be reached any more. The
// item is canceled next; what it is granted is not given back, because the node
// asks for it again, or its caller does at another.
func (d *Desk) Strand(it *door.Item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.mu.waiters[it]; w != nil {
		w.stranded = true
	}
}

func (d *Desk) removeLocked(w *waiter) {
	delete(d.mu.waiters, w.item)
	d.waiting.Store(int64(len(d.mu.waiters)))
}

func (d *Desk) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// heldFor is how long one that waits for a leader is held before it is sent on
// its way again. A new leader here ends it at once.
const heldFor = 50 * time.Millisecond

// Hold keeps an item that may wait while nobody leads, and sends it on its way
// again. It returns false for one that may not, and where a leader can't come.
func (d *Desk) Hold(it *door.Item) bool {
	if it.MaxWait == 0 || it.Relayed || !isElection(d.config.Leaderless()) || time.Since(it.Since) >= it.MaxWait {
		return false
	}
	d.mu.Lock()
	d.holdLocked(it)
	d.mu.Unlock()
	d.nudge()
	return true
}

func (d *Desk) holdLocked(it *door.Item) {
	if !d.config.Door.Hold(it, d) {
		return
	}
	it.Hops = 0
	if len(d.mu.held) == 0 {
		d.mu.heldAt = d.config.Elapsed() + heldFor
	}
	d.mu.held[it] = struct{}{}
}

// Run serves the queue until stop is closed.
func (d *Desk) Run(stop <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-d.wake:
		case <-timer.C:
		}
		timer.Reset(d.Step())
	}
}

// Step does what is due and returns how long there is until the next. Run calls it;
// who has another clock than Run calls it instead.
func (d *Desk) Step() time.Duration {
	var a actions
	d.mu.Lock()
	now := d.config.Elapsed()
	next := now + time.Hour
	if d.mu.leads {
		d.serveLocked(now, &a)
		if due, ok := d.mu.queue.NextDue(); ok {
			next = min(next, due)
		}
	}
	if len(d.mu.held) > 0 {
		if now >= d.mu.heldAt {
			d.releaseHeldLocked(&a)
		} else {
			next = min(next, d.mu.heldAt)
		}
	}
	d.mu.Unlock()
	d.do(&a)
	return max(0, next-d.config.Elapsed())
}

// releaseHeldLocked sends everybody who is held on their way, but for those who
// have waited long enough.
func (d *Desk) releaseHeldLocked(a *actions) {
	for it := range d.mu.held {
		if time.Since(it.Since) >= it.MaxWait {
			a.answers = append(a.answers, answer{item: it, err: d.config.Leaderless()})
			continue
		}
		a.reroute = append(a.reroute, it)
	}
	clear(d.mu.held)
}

// serveLocked looks at the heads that are due, and at those who have waited long
// enough.
func (d *Desk) serveLocked(now time.Duration, a *actions) {
	for _, one := range d.mu.queue.Expire(now) {
		w := one.Owner.(*waiter)
		a.answer(w.item, d.expired(now, w))
		d.removeLocked(w)
	}
	for _, head := range d.mu.queue.Next(now) {
		d.tryLocked(now, head.Owner.(*waiter), a)
	}
}
