package overview

import (
	"sync"
	"sync/atomic"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/tally"
)

const (
	// limitsMax are the limits that are looked after, the first in the order of their
	// names.
	limitsMax = 1000
	// ClientPlaces are the clients told apart by each of three counts.
	ClientPlaces = 128
)

// Book is what one node remembers for the picture. It is safe for concurrent use.
type Book struct {
	began time.Time
	// known are the limits that are looked after.
	known atomic.Pointer[map[string]*limit]
	// version counts what is worth another picture.
	version atomic.Uint64

	// past has a lock of its own: an answer needs it, and nobody holds it for longer than
	// it takes to copy an hour.
	past struct {
		sync.Mutex
		hour hour
	}

	mu struct {
		sync.Mutex
		// limits are those of known in the order of their names, total all that there
		// are.
		limits    []*limit
		total     int
		incidents incidents
		// retrying, throttled and busy are clients.
		retrying, throttled, busy sketch
		// halved is when they were.
		halved time.Time
		// changed is closed when version moves. Nil while nobody waits.
		changed chan struct{}
	}
}

// New returns an empty book. now is when it begins; every later one is from the same
// clock.
func New(now time.Time) *Book {
	b := &Book{began: now}
	b.known.Store(&map[string]*limit{})
	b.mu.incidents = newIncidents()
	b.mu.retrying, b.mu.throttled, b.mu.busy = newSketch(ClientPlaces), newSketch(ClientPlaces), newSketch(ClientPlaces)
	b.mu.halved = now
	return b
}

// Configure says which limits there are, in the order of their names.
func (b *Book) Configure(limits []*logv1.Limit) {
	before, known := *b.known.Load(), make(map[string]*limit, min(len(limits), limitsMax))
	list := make([]*limit, 0, min(len(limits), limitsMax))
	for _, config := range limits[:min(len(limits), limitsMax)] {
		l := before[config.GetName()]
		if l == nil || l.config != config {
			l = newLimit(config)
		}
		known[config.GetName()] = l
		list = append(list, l)
	}
	b.known.Store(&known)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.limits, b.mu.total = list, len(limits)
	if len(limits) <= limitsMax {
		b.mu.incidents.forgetLimits(known)
	}
	b.changeLocked()
}

// Decided counts the answer to an acquire that entered here, which took so long. A
// repetition of an answer counts nothing.
func (b *Book) Decided(now time.Time, op *logv1.Acquire, result *logv1.AcquireResult, took time.Duration) {
	if result.GetRepeated() {
		return
	}
	waited := result.GetQueue().GetWaited() > 0
	b.past.Lock()
	if p := b.past.hour.at(now, now); p != nil {
		switch {
		case result.GetGranted():
			p.Granted++
		default:
			p.Denied++
		}
		if waited {
			p.Waited++
		}
	}
	b.past.Unlock()
	known, at := *b.known.Load(), b.second(now)
	if !result.GetGranted() {
		denied(known, at, result.GetDenials(), waited)
		return
	}
	charges := op.GetCharges()
	for i, c := range charges {
		l := known[c.GetLimit()]
		if l == nil {
			continue
		}
		if isFirst(charges[:i], c.GetLimit()) {
			l.grant(at, c.GetKey(), waited, took)
		}
		l.spend(at, c.GetDimension(), c.GetAmount())
	}
}

// denied counts what denied an acquire, each limit once.
func denied(known map[string]*limit, at int64, denials []*logv1.Denial, waited bool) {
	for i, d := range denials {
		l, first := known[d.GetLimit()], true
		for _, earlier := range denials[:i] {
			first = first && earlier.GetLimit() != d.GetLimit()
		}
		if l != nil && first {
			l.deny(at, d.GetKey(), waited)
		}
	}
}

// isFirst says whether no earlier charge is of the limit.
func isFirst(earlier []*logv1.Charge, limit string) bool {
	for _, c := range earlier {
		if c.GetLimit() == limit {
			return false
		}
	}
	return true
}

func (b *Book) second(now time.Time) int64 { return int64(max(now.Sub(b.began), 0) / time.Second) }

// Reported counts what a report of any node has added of a client, at the time of its
// entry.
func (b *Book) Reported(now, at time.Time, client string, added tally.Count) {
	b.mu.Lock()
	b.rememberLocked(now, client, added)
	b.mu.Unlock()
	b.past.Lock()
	defer b.past.Unlock()
	if p := b.past.hour.at(now, at); p != nil {
		p.OK += max(0, added.Total-added.Throttled)
		p.Throttled += added.Throttled
		p.Retries += added.Retries
	}
}

// Restored takes the clients of a state that replaced what was there.
func (b *Book) Restored(now time.Time, clients []fsm.ClientStat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range clients {
		b.rememberLocked(now, c.Client, c.Count)
	}
	b.changeLocked()
}

func (b *Book) rememberLocked(now time.Time, client string, added tally.Count) {
	if now.Sub(b.mu.halved) >= time.Minute {
		b.mu.halved = now
		b.mu.retrying.halve()
		b.mu.throttled.halve()
		b.mu.busy.halve()
	}
	for _, one := range []struct {
		names *sketch
		count int64
	}{
		{&b.mu.retrying, added.Retries},
		{&b.mu.throttled, added.Throttled},
		{&b.mu.busy, added.Total + added.Denied},
	} {
		if one.count > 0 {
			one.names.add(client, one.count)
		}
	}
}

// Happened takes an event of the node, in order. client is who it is about, as it
// calls itself.
func (b *Book) Happened(e events.Event, client string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.incidents.take(e, client)
	b.changeLocked()
}

func (b *Book) changeLocked() {
	b.version.Add(1)
	if b.mu.changed != nil {
		close(b.mu.changed)
		b.mu.changed = nil
	}
}

// Version counts what was worth another picture.
func (b *Book) Version() uint64 { return b.version.Load() }

// Changed is closed as soon as the version is another one.
func (b *Book) Changed(version uint64) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version.Load() != version {
		return closedChan
	}
	if b.mu.changed == nil {
		b.mu.changed = make(chan struct{})
	}
	return b.mu.changed
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
