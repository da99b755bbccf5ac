package alert

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// outbox keeps the incidents of one sink and delivers them, one alert at a time.
type outbox struct {
	sink    Sink
	name    string
	timeout time.Duration
	// repeat is how often an open incident is delivered again; 0 is never.
	repeat    time.Duration
	heldMax   int
	onFailure func(Failure)
	counts    *counters
	// wake has room for one: something changed.
	wake chan struct{}

	mu struct {
		sync.Mutex
		// held are the incidents that are open or not delivered, oldest first.
		held    []*incident
		closing bool
	}
}

func newOutbox(sink Sink, c Config, counts *counters) *outbox {
	o := &outbox{
		sink: sink, name: fmt.Sprintf("%T", sink), timeout: c.SendTimeout, heldMax: c.HeldMax,
		onFailure: c.OnFailure, counts: counts, wake: make(chan struct{}, 1),
	}
	if named, ok := sink.(fmt.Stringer); ok {
		o.name = named.String()
	}
	if repeating, ok := sink.(interface{ repeatEvery() time.Duration }); ok {
		o.repeat = repeating.repeatEvery()
	}
	return o
}

// take keeps a beginning where there is room, and an end always: it goes where
// its beginning is. told: somebody else has delivered the beginning.
func (o *outbox) take(now time.Time, a Alert, told bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closing {
		return
	}
	at := o.openLocked(a)
	switch {
	case a.Resolved && at < 0:
		return
	case !a.Resolved && at >= 0:
		o.mu.held[at].released = false
		return
	case a.Resolved:
		if a = a.clone(); a.Ended.IsZero() {
			a.Ended = now
		}
		o.mu.held[at].resolve(now, a)
	case len(o.mu.held) >= o.heldMax:
		o.counts.dropped.Add(1)
		return
	default:
		if a = a.clone(); a.Started.IsZero() {
			a.Started = now
		}
		a.Ended = time.Time{}
		i := &incident{start: a, told: told, due: now}
		if told {
			i.due = now.Add(o.repeat)
		}
		o.mu.held = append(o.mu.held, i)
	}
	o.rouse()
}

// openLocked is where an incident is held that is not over, -1 where it is not.
func (o *outbox) openLocked(a Alert) int {
	return slices.IndexFunc(o.mu.held, func(i *incident) bool { return !i.over && keyOf(i.start) == keyOf(a) })
}

// release forgets an open incident as soon as its beginning is delivered.
func (o *outbox) release(a Alert) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.openLocked(a)
	switch {
	case at < 0:
	case o.mu.held[at].told:
		o.forgetLocked(o.mu.held[at])
	default:
		o.mu.held[at].released = true
	}
}

// rouse wakes run. It never blocks.
func (o *outbox) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// finish lets run end once everything is delivered, and tries what failed again
// now.
func (o *outbox) finish(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closing {
		return
	}
	o.mu.closing = true
	for _, i := range o.mu.held {
		i.due = now
	}
	o.rouse()
}

// pending counts the incidents of which the sink lacks something.
func (o *outbox) pending() (count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range o.mu.held {
		if i.pending() {
			count++
		}
	}
	return count
}

// run delivers until ctx ends, or everything is delivered after finish.
func (o *outbox) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		i, wait, done := o.choose(time.Now())
		if done {
			return
		}
		if i != nil {
			o.deliver(ctx, i)
			continue
		}
		timer.Reset(wait)
		select {
		case <-o.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// idleWait is how long run waits when nothing is due: until it is woken.
const idleWait = time.Hour

// choose finds the incident whose delivery is due, the oldest first, or how long
// to wait for one.
func (o *outbox) choose(now time.Time) (i *incident, wait time.Duration, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait, done = idleWait, o.mu.closing
	for _, i := range o.mu.held {
		if !i.pending() && (o.repeat == 0 || o.mu.closing) {
			continue
		}
		done = done && !i.pending()
		if !i.due.After(now) {
			return i, 0, false
		}
		wait = min(wait, i.due.Sub(now))
	}
	return nil, wait, done
}

// deliver sends what is next of an incident and notes how that went.
func (o *outbox) deliver(ctx context.Context, i *incident) {
	o.mu.Lock()
	a, repeated := i.next(), !i.pending()
	o.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	err := send(limited, o.sink, a)
	cancel()
	if err != nil && ctx.Err() != nil {
		// Cut off by Close: no failure of the sink.
		return
	}
	if failure, tell := o.note(i, a, repeated, err); tell && o.onFailure != nil {
		o.onFailure(failure)
	}
}

// send is Send, for a sink that may panic: it is somebody else's, and alerts must
// not end the program that they are about.
func send(ctx context.Context, sink Sink, a Alert) (err error) {
	defer func() {
		if said := recover(); said != nil {
			err = fmt.Errorf("the sink panicked: %v", said)
		}
	}()
	return sink.Send(ctx, a)
}

// note keeps the outcome of one delivery.
func (o *outbox) note(i *incident, a Alert, repeated bool, err error) (failure Failure, tell bool) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.counts.failed.Add(1)
		longest := longestPause
		if o.mu.closing {
			longest = closingPause
		}
		// Close sets an end of its own.
		givenUp := i.failed(now, longest) && !o.mu.closing
		if givenUp {
			o.counts.dropped.Add(1)
			o.forgetLocked(i)
		}
		return Failure{Sink: o.name, Alert: a, Err: err, GivenUp: givenUp}, givenUp || i.failures == 1
	}
	if !repeated {
		o.counts.delivered.Add(1)
	}
	i.failures, i.endFailures = 0, 0
	switch {
	case a.Resolved:
		o.forgetLocked(i)
	case i.over:
		// The end came while the beginning was on its way.
		i.told, i.due = true, now
	case i.released:
		o.forgetLocked(i)
	default:
		i.told, i.due = true, now.Add(o.repeat)
	}
	return Failure{}, false
}

func (o *outbox) forgetLocked(i *incident) {
	o.mu.held = slices.DeleteFunc(o.mu.held, func(held *incident) bool { return held == i })
}
