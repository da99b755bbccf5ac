package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/stat"
)

// Asker is one caller's way to ask. It is for one goroutine.
type Asker interface {
	// Ask asks for one token of a key. An error means that nobody answered.
	Ask(ctx context.Context, key int) (Answer, error)
}

// Answer is one decision.
type Answer struct {
	Granted bool
	// Local: the client decided by itself, because nobody answered.
	Local bool
	// Escrow: a node granted it from tokens that it held.
	Escrow bool
}

// Side is what is loaded.
type Side interface {
	// Asker is that of caller index, from 0.
	Asker(index int) (Asker, error)
	// CPU is the processor time of its servers since they began, ErrUnknown where
	// that can't be said.
	CPU() (time.Duration, error)
}

// ErrUnknown: there is no figure.
var ErrUnknown = errors.New("not known")

// Config is one round of one side.
type Config struct {
	Callers      int
	Keys         int
	Distribution stat.Distribution
	// Rate is how many starts a second an open loop means to have over all callers.
	// 0: a closed loop, in which each caller asks again at once.
	Rate     float64
	Arrivals stat.Arrivals
	// Timeout is the longest that one call may take.
	Timeout time.Duration
	// Seed of the keys and of the arrivals.
	Seed uint64
	// Length is measured, after a Warmup that is not.
	Warmup, Length time.Duration

	// OnTime makes timers end in time while an open loop runs, until stop: KeepTime, or nil
	// in a bubble of testing/synctest, where they always do.
	OnTime func() (stop func())
	// Reason names a failure.
	Reason func(error) string
	// Grant, where there is one, is told every grant that a server gave, by many at
	// the same time.
	Grant func(key int, sent, ended time.Time)
	// Began, where there is one, is called when the measured part begins, and has
	// ended before Run returns.
	Began func(ctx context.Context, from time.Time)
}

// histogramsMost is how many histograms callers share: enough for them not to wait
// for one another.
const histogramsMost = 64

// SlotLength is what the timeline counts by.
const SlotLength = 100 * time.Millisecond

// failurePause keeps a caller whom nobody answers from asking in a tight loop.
const failurePause = 5 * time.Millisecond

// Slot counts what ended in 100 ms.
type Slot struct{ Granted, Denied, Failed, Local atomic.Int64 }

// Measured is what one side came to.
type Measured struct {
	// Granted and Denied include local ones and those from escrow.
	Granted, Denied, Failed, Local, Escrow, Backlog int64
	// PerCaller is what each was granted.
	PerCaller []int64
	Latencies *stat.Latencies
	Failures  map[string]int64
	// CPU is nil where it is not known.
	CPU   *time.Duration
	Slots []Slot
}

// drive is a round under way.
type drive struct {
	config      *Config
	from, until time.Time
	slots       []Slot
}

// Run loads the side with all callers and waits until they have stopped. A round
// that ctx ends is an error.
func Run(ctx context.Context, config *Config, s Side) (*Measured, error) {
	if config.Rate > 0 && config.OnTime != nil {
		defer config.OnTime()()
	}
	// What the other side left behind is not this one's to clean up.
	runtime.GC()
	d := &drive{config: config, slots: make([]Slot, (config.Length+SlotLength-1)/SlotLength)}
	callers := make([]*caller, config.Callers)
	// Not one each: ten thousand of them would be gigabytes.
	latencies := make([]*stat.Latencies, min(config.Callers, histogramsMost))
	for i := range latencies {
		latencies[i] = stat.NewLatencies()
	}
	for i := range callers {
		one, err := d.newCaller(s, i)
		if err != nil {
			return nil, err
		}
		one.latencies = latencies[i%len(latencies)]
		callers[i] = one
	}
	// It begins when all are there: making many takes a while.
	start := time.Now()
	d.from = start.Add(config.Warmup)
	d.until = d.from.Add(config.Length)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var joined sync.WaitGroup
	for _, one := range callers {
		one.start = start
		joined.Go(func() { one.run(ctx) })
	}
	cpu, err := d.watch(ctx, s)
	cancel()
	joined.Wait()
	if err != nil {
		return nil, fmt.Errorf("run load: %w", err)
	}
	m := &Measured{Latencies: stat.NewLatencies(), Failures: map[string]int64{}, CPU: cpu, Slots: d.slots}
	for _, one := range callers {
		m.add(one)
	}
	for _, some := range latencies {
		m.Latencies.Add(some)
	}
	return m, nil
}

// watch waits for both ends of the measured part and reads the processor time
// there.
func (d *drive) watch(ctx context.Context, s Side) (*time.Duration, error) {
	if err := sleepUntil(ctx, d.from); err != nil {
		return nil, err
	}
	var faults sync.WaitGroup
	if d.config.Began != nil {
		faultCtx, cancel := context.WithDeadline(ctx, d.until)
		defer faults.Wait()
		defer cancel()
		faults.Go(func() { d.config.Began(faultCtx, d.from) })
	}
	before, err := s.CPU()
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, err
	}
	if slept := sleepUntil(ctx, d.until); slept != nil {
		return nil, slept
	}
	if err != nil {
		return nil, nil // not known is no failure
	}
	after, err := s.CPU()
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

func (m *Measured) add(c *caller) {
	m.Granted += c.granted
	m.Denied += c.denied
	m.Failed += c.failed
	m.Local += c.local
	m.Escrow += c.escrow
	m.Backlog += c.backlog
	m.PerCaller = append(m.PerCaller, c.granted)
	for what, n := range c.failures {
		m.Failures[what] += n
	}
}
