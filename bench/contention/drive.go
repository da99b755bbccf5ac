package contention

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/stat"
)

// asker is one caller's way to ask. It is for one goroutine.
type asker interface {
	// ask asks for one token of a key. An error means that nobody answered.
	ask(ctx context.Context, key int) (answer, error)
}

// answer is one decision.
type answer struct {
	granted bool
	// local: the client decided by itself, because nobody answered.
	local bool
}

// side is what is loaded.
type side interface {
	asker(index int) (asker, error)
	// cpu is the processor time of its servers since they began, errUnknown where
	// that can't be said.
	cpu() (time.Duration, error)
}

// errUnknown: there is no figure.
var errUnknown = errors.New("not known")

// histogramsMost is how many histograms callers share: enough for them not to wait
// for one another.
const histogramsMost = 64

// slotLength is what the timeline counts by.
const slotLength = 100 * time.Millisecond

// failurePause keeps a caller whom nobody answers from asking in a tight loop.
const failurePause = 5 * time.Millisecond

// drive loads one side for one round.
type drive struct {
	config *Config
	round  int
	// tally, where there is one, is told every grant.
	tally *tally
	// began, where there is one, is called when the measured part begins, and has
	// ended before run returns.
	began func(ctx context.Context, from time.Time)

	from, until time.Time
	slots       []slot
}

// slot counts what ended in 100 ms.
type slot struct{ granted, denied, failed, local atomic.Int64 }

// measured is what one side came to.
type measured struct {
	// granted and denied include local ones.
	granted, denied, failed, local, backlog int64
	// perCaller is what each was granted.
	perCaller []int64
	latencies *stat.Latencies
	failures  map[string]int64
	cpu       *time.Duration
	slots     []slot
}

// run loads the side with all callers and waits until they have stopped.
func (d *drive) run(ctx context.Context, s side) (*measured, error) {
	// What the other side left behind is not this one's to clean up.
	runtime.GC()
	callers := make([]*caller, d.config.Callers)
	// Not one each: ten thousand of them would be gigabytes.
	latencies := make([]*stat.Latencies, min(d.config.Callers, histogramsMost))
	for i := range latencies {
		latencies[i] = stat.NewLatencies()
	}
	start := time.Now()
	d.from = start.Add(d.config.Warmup)
	d.until = d.from.Add(d.config.Length)
	d.slots = make([]slot, (d.config.Length+slotLength-1)/slotLength)
	for i := range callers {
		one, err := d.newCaller(s, i, start)
		if err != nil {
			return nil, err
		}
		one.latencies = latencies[i%len(latencies)]
		callers[i] = one
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var joined sync.WaitGroup
	for _, one := range callers {
		joined.Go(func() { one.run(ctx) })
	}
	cpu, err := d.watch(ctx, s)
	cancel()
	joined.Wait()
	if err != nil {
		return nil, fmt.Errorf("run load: %w", err)
	}
	m := &measured{latencies: stat.NewLatencies(), failures: map[string]int64{}, cpu: cpu, slots: d.slots}
	for _, one := range callers {
		m.add(one)
	}
	for _, some := range latencies {
		m.latencies.Add(some)
	}
	return m, nil
}

// watch waits for both ends of the measured part and reads the processor time
// there.
func (d *drive) watch(ctx context.Context, s side) (*time.Duration, error) {
	if err := sleepUntil(ctx, d.from); err != nil {
		return nil, err
	}
	var faults sync.WaitGroup
	if d.began != nil {
		faultCtx, cancel := context.WithDeadline(ctx, d.until)
		defer faults.Wait()
		defer cancel()
		faults.Go(func() { d.began(faultCtx, d.from) })
	}
	before, err := s.cpu()
	if err != nil && !errors.Is(err, errUnknown) {
		return nil, err
	}
	if slept := sleepUntil(ctx, d.until); slept != nil {
		return nil, slept
	}
	if err != nil {
		return nil, nil // not known is no failure
	}
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	used := after - before
	return &used, nil
}

func sleepUntil(ctx context.Context, at time.Time) error { return sleep(ctx, time.Until(at)) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// caller is one of them. Everything in it is its goroutine's until that has ended.
type caller struct {
	drive    *drive
	ask      asker
	keys     *stat.Chooser
	schedule *stat.Schedule // nil in a closed loop
	start    time.Time
	timer    *time.Timer

	granted, denied, failed, local, backlog int64
	failures                                map[string]int64
	// latencies are shared with others.
	latencies *stat.Latencies
}

func (d *drive) newCaller(s side, index int, start time.Time) (*caller, error) {
	ask, err := s.asker(index)
	if err != nil {
		return nil, err
	}
	seed := rand.NewPCG(d.config.Seed+uint64(d.round), uint64(index))
	keys, err := stat.NewChooser(d.config.Distribution, d.config.Keys, seed)
	if err != nil {
		return nil, err
	}
	c := &caller{
		drive: d, ask: ask, keys: keys, start: start, timer: time.NewTimer(time.Hour),
		failures: map[string]int64{},
	}
	if d.config.Rate > 0 {
		c.schedule, err = stat.NewSchedule(d.config.Arrivals, d.config.Rate, d.config.Callers, index, seed)
	}
	return c, err
}

func (c *caller) run(ctx context.Context) {
	defer c.timer.Stop()
	for {
		intended, ok := c.next(ctx)
		if !ok {
			return
		}
		key := c.keys.Next()
		sent := time.Now()
		if c.schedule == nil {
			intended = sent
		}
		said, err := c.ask.ask(ctx, key)
		ended := time.Now()
		if err != nil && ctx.Err() != nil {
			c.cutOff(intended, ended)
			return
		}
		if said.granted && !said.local && c.drive.tally != nil {
			c.drive.tally.grant(key, sent, ended)
		}
		c.count(intended, ended, said, err)
		if err != nil {
			_ = sleep(ctx, failurePause)
		}
	}
}

// next waits for the next start. It is when the call was meant to start, however
// late that is: what a slow answer holds up is not left out.
func (c *caller) next(ctx context.Context) (intended time.Time, ok bool) {
	if c.schedule == nil {
		return time.Time{}, ctx.Err() == nil
	}
	intended = c.start.Add(c.schedule.Next())
	if wait := time.Until(intended); wait > 0 {
		c.timer.Reset(wait)
		select {
		case <-c.timer.C:
		case <-ctx.Done():
			return intended, false
		}
	}
	if ctx.Err() != nil {
		c.cutOff(intended, time.Now())
		return intended, false
	}
	return intended, true
}

// cutOff counts what was due when the round ended: one that has waited for longer
// than a call may take has failed, the others of an open loop are a backlog.
func (c *caller) cutOff(intended, ended time.Time) {
	if ended.Sub(intended) > c.drive.config.Timeout {
		c.failed++
		c.failures["UNANSWERED"]++
	}
	if c.schedule == nil {
		return
	}
	for at := intended; at.Before(c.drive.until); at = c.start.Add(c.schedule.Next()) {
		c.backlog++
	}
}

// count counts what ended inside the measured part.
func (c *caller) count(intended, ended time.Time, said answer, err error) {
	if ended.Before(c.drive.from) || !ended.Before(c.drive.until) {
		return
	}
	at := &c.drive.slots[ended.Sub(c.drive.from)/slotLength]
	switch {
	case err != nil:
		c.failed++
		c.failures[reason(err)]++
		at.failed.Add(1)
		return
	case said.granted:
		c.granted++
		at.granted.Add(1)
	default:
		c.denied++
		at.denied.Add(1)
	}
	if said.local {
		c.local++
		at.local.Add(1)
	}
	c.latencies.Record(ended.Sub(intended))
}

func (m *measured) add(c *caller) {
	m.granted += c.granted
	m.denied += c.denied
	m.failed += c.failed
	m.local += c.local
	m.backlog += c.backlog
	m.perCaller = append(m.perCaller, c.granted)
	for what, n := range c.failures {
		m.failures[what] += n
	}
}
