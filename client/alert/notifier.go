package alert

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what a Notifier does. The zero value of everything but Sinks has a
// meaning.
type Config struct {
	// Sinks get every alert, each at its own pace.
	Sinks []Sink
	// OnFailure hears that a sink did not take an alert: at the first failure,
	// and when it is given up. It is called from the sink's goroutine. Nil: nobody
	// hears it, but Counts counts it.
	OnFailure func(Failure)
	// SendTimeout bounds one delivery. Default 5 s.
	SendTimeout time.Duration
	// HeldMax is how many incidents are kept for each sink at most, open ones
	// included. Default 256.
	HeldMax int
}

// Failure is a delivery that failed.
type Failure struct {
	// Sink names it, without secrets.
	Sink  string
	Alert Alert
	Err   error
	// GivenUp: it will not be tried again.
	GivenUp bool
}

// Counts are the deliveries of a Notifier since it was made, over all sinks.
type Counts struct {
	// Delivered alerts, repeats left out.
	Delivered uint64
	// Failed tries, those that were repeated with success included.
	Failed uint64
	// Dropped incidents: no room for them, given up, or not delivered at Close.
	Dropped uint64
}

// counters are Counts while they grow.
type counters struct{ delivered, failed, dropped atomic.Uint64 }

// Notifier hands incidents to sinks. It is safe for concurrent use.
type Notifier struct {
	outboxes []*outbox
	counts   counters
	cancel   context.CancelFunc
	joined   chan struct{}

	closing sync.Once
}

// NewNotifier starts a Notifier with the defaults of Config.
func NewNotifier(sinks ...Sink) *Notifier { return New(Config{Sinks: sinks}) }

// New starts a Notifier: one goroutine a sink. Close ends them.
func New(c Config) *Notifier {
	if c.SendTimeout <= 0 {
		c.SendTimeout = 5 * time.Second
	}
	if c.HeldMax <= 0 {
		c.HeldMax = 256
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &Notifier{cancel: cancel, joined: make(chan struct{})}
	var running sync.WaitGroup
	for _, sink := range c.Sinks {
		o := newOutbox(sink, c, &n.counts)
		n.outboxes = append(n.outboxes, o)
		running.Go(func() { o.run(ctx) })
	}
	go func() {
		running.Wait()
		close(n.joined)
	}()
	return n
}

// Notify takes the beginning of an incident, or its end where Resolved is set.
// It never blocks. A beginning that is known already is ignored, and so is the
// end of an incident that is not known: each incident alerts once and resolves
// once. After Close it does nothing.
func (n *Notifier) Notify(a Alert) {
	now := time.Now()
	for _, o := range n.outboxes {
		o.take(now, a, false)
	}
}

// Adopt takes the beginning of an incident that somebody else has told the same sinks
// of: they are told of its end, and repeats go on, but the beginning is not delivered
// again. One that is known already is ignored, as with Notify.
func (n *Notifier) Adopt(a Alert) {
	now := time.Now()
	for _, o := range n.outboxes {
		o.take(now, a, true)
	}
}

// Release leaves an incident that is not over to somebody else, who will adopt it. A
// sink that has been told of its beginning hears no more of it from here; one that has
// not still is, and of its end too if that comes sooner.
func (n *Notifier) Release(a Alert) {
	for _, o := range n.outboxes {
		o.release(a)
	}
}

// Counts are the figures so far.
func (n *Notifier) Counts() Counts {
	return Counts{
		Delivered: n.counts.delivered.Load(), Failed: n.counts.failed.Load(), Dropped: n.counts.dropped.Load(),
	}
}

// returnGrace is how long a sink has to return after its context has ended.
const returnGrace = time.Second

// Close delivers what waits, until ctx ends, and stops. Incidents that are open
// stay open at the sinks: that whoever noticed them goes away does not mean that
// they are over. The error says what could not be delivered, or that a sink did
// not return. It is idempotent; later calls wait for the first.
func (n *Notifier) Close(ctx context.Context) error {
	for _, o := range n.outboxes {
		o.finish(time.Now())
	}
	select {
	case <-n.joined:
	case <-ctx.Done():
	}
	n.cancel()
	timer := time.NewTimer(returnGrace)
	defer timer.Stop()
	select {
	case <-n.joined:
	case <-timer.C:
		return n.leftovers(errors.New("close alerts: a sink does not return"))
	}
	return n.leftovers(nil)
}

// leftovers adds how many incidents each sink still lacks something of, and
// counts them once.
func (n *Notifier) leftovers(err error) error {
	errs := []error{err}
	for _, o := range n.outboxes {
		if count := o.pending(); count > 0 {
			errs = append(errs, fmt.Errorf("close alerts: %s: %d not delivered", o.name, count))
		}
	}
	n.closing.Do(func() {
		for _, o := range n.outboxes {
			n.counts.dropped.Add(uint64(o.pending()))
		}
	})
	return errors.Join(errs...)
}
