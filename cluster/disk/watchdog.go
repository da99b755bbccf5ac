package disk

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// StallLimit is how long a call to a store may take with the given election
// timeout: three elections, at least 5 s (R12).
func StallLimit(election time.Duration) time.Duration {
	return max(5*time.Second, 3*election)
}

// Config configures a Watchdog.
type Config struct {
	// Limit is how long one call may be in flight. Default StallLimit(0).
	Limit time.Duration
	// OnStall hears once that a call has been in flight for longer. The call
	// still hangs: waiting for Raft to do anything is in vain. Required.
	OnStall func(*StallError)
	// OnError hears once that a store returned an error. Raft must not be asked
	// to go on, and the call not be repeated: what a failed sync has written
	// nobody knows (R14). Required. Neither callback may wait for a store, for
	// Raft or for Close: it tells the owner and returns.
	OnError func(error)
	// Logger hears of both. Nil: nobody does.
	Logger hclog.Logger
}

// StallError says which call hangs.
type StallError struct {
	Call string
	// InFlight is for how long, at least.
	InFlight time.Duration
	Limit    time.Duration
}

// Error names the call and both durations.
func (e *StallError) Error() string {
	return fmt.Sprintf("disk stalled: %s has been in flight for %s, at most %s",
		e.Call, e.InFlight.Round(time.Millisecond), e.Limit)
}

// Watchdog watches the calls to stores. It is safe for concurrent use.
type Watchdog struct {
	config  Config
	done    chan struct{}
	running sync.WaitGroup
	closed  atomic.Bool
	stalled sync.Once
	failed  sync.Once

	mu struct {
		sync.Mutex
		// ticks is the time observed so far. A machine that was suspended, or a
		// process that was stopped, finds on waking that a call began long ago;
		// the disk had no part in that, so only ticks count.
		ticks time.Duration
		next  uint64
		calls map[uint64]call
	}
}

type call struct {
	name  string
	since time.Duration
}

// Watch starts a watchdog. Close ends it.
func Watch(c Config) *Watchdog {
	if c.Limit <= 0 {
		c.Limit = StallLimit(0)
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	w := &Watchdog{config: c, done: make(chan struct{})}
	w.mu.calls = make(map[uint64]call)
	w.running.Go(w.run)
	return w
}

// Close stops watching. Close it before the stores: what they say of calls
// after their end is no failure of the disk. It is idempotent.
func (w *Watchdog) Close() {
	if !w.closed.Swap(true) {
		close(w.done)
	}
	w.running.Wait()
}

func (w *Watchdog) run() {
	// A twentieth more than the limit is the latest that a stall is seen.
	period := w.config.Limit / 20
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		now := time.Now()
		if stall := w.tick(min(now.Sub(last), 2*period)); stall != nil {
			w.stall(stall)
		}
		last = now
	}
}

// tick moves the observed time and returns the longest call beyond the limit.
func (w *Watchdog) tick(passed time.Duration) *StallError {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.ticks += passed
	var worst *StallError
	for _, c := range w.mu.calls {
		age := w.mu.ticks - c.since
		if age > w.config.Limit && (worst == nil || age > worst.InFlight) {
			worst = &StallError{Call: c.name, InFlight: age, Limit: w.config.Limit}
		}
	}
	return worst
}

func (w *Watchdog) stall(e *StallError) {
	w.stalled.Do(func() {
		w.config.Logger.Error("disk stalled", "call", e.Call, "took", e.InFlight)
		w.config.OnStall(e)
	})
}

// watch runs one call to a store. isAnswer tells errors that are answers.
func (w *Watchdog) watch(name string, isAnswer func(error) bool, do func() error) error {
	id := w.begin(name)
	err := do()
	w.end(id)
	if err == nil || isAnswer(err) || w.closed.Load() {
		return err
	}
	w.failed.Do(func() {
		w.config.Logger.Error("disk failed", "call", name, "err", err)
		w.config.OnError(fmt.Errorf("%s: %w", name, err))
	})
	return err
}

func (w *Watchdog) begin(name string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.mu.next
	w.mu.next++
	w.mu.calls[id] = call{name: name, since: w.mu.ticks}
	return id
}

func (w *Watchdog) end(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.calls, id)
}

// never: every error is a failure.
func never(error) bool { return false }

// isNoEntry: the log has no such entry; Raft then sends a snapshot instead.
func isNoEntry(err error) bool { return errors.Is(err, raft.ErrLogNotFound) }

// isNoKey: the stable store has no such key. Raft compares this text, so the
// stores all use it.
func isNoKey(err error) bool { return err.Error() == "not found" }
