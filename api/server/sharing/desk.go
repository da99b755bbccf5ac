// Package sharing tells the authority which sessions this node has heard of that share
// limits while nobody answers them, and sessions what they are promised.
//
// Sessions refresh each second. What they say is gathered, and goes into the log as one
// operation for all of them, and only where it would change something or a promise is
// about to end: a fleet that stays as it is costs an operation in four seconds. What a
// session is told comes from the results of those operations, never from the replica,
// with the time that has passed since: so a node that is cut off from the others promises
// nothing that the log does not keep.
package sharing

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/client/clock"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/shares"
)

const (
	// round is how often the desk looks whether there is something to say.
	round = 250 * time.Millisecond
	// keepAfter is how old what was said of a session gets before it is said again, at
	// about a third of how long it is valid; together is how old what goes with it is at
	// least, so that sessions are spoken of together.
	keepAfter = 4 * time.Second
	together  = time.Second
	// silentAfter is for how long a session that says nothing is spoken of.
	silentAfter = 3 * time.Second
	// sayWithin bounds one operation.
	sayWithin = 2 * time.Second
	// bytesMost and heldMost bound an operation.
	bytesMost = 32 << 10
	heldMost  = 512
	// seatsMax bounds the sessions and limits of a node (G10). Others are promised
	// nothing.
	seatsMax = 100_000
)

// Node carries out operations and shows its replica.
type Node interface {
	// Do waits for the result. A refusal is a *fsm.Refused.
	Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error)
	// View calls read at once where stale.
	View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error
}

// Desk is one node's. It is safe for concurrent use.
type Desk struct {
	node  Node
	clock *clock.Clock
	// life ends when the desk is closed.
	life   context.Context //nolint:containedctx // it is the life of the goroutine below
	end    context.CancelFunc
	joined sync.WaitGroup
	// pools are those of limits as they were in the last round. They are the goroutine's.
	pools map[string]pool

	mu     sync.Mutex
	seats  map[shares.ID]*seat
	begun  bool
	closed bool
}

// seat is one session at one limit.
type seat struct {
	// held is the newest promise that the session holds, said whether the authority was
	// told so. left: it holds none any more.
	held uint64
	said bool
	left bool
	// heard is when the session refreshed last.
	heard time.Duration
	// promise is the one of the last operation that spoke of the session, sent when that
	// was handed in: what counts from then on is short of the truth.
	promise shares.Promise
	sent    time.Duration
	known   bool
}

// New is the desk of a node. Its goroutine begins with the first session that refreshes.
func New(node Node) *Desk {
	d := &Desk{node: node, clock: clock.New(), seats: make(map[shares.ID]*seat), pools: make(map[string]pool)}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

// Close ends the goroutine and waits for it. What was not said is said by other nodes, or
// ends by itself.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.end()
	d.joined.Wait()
}

// refresh hears of a session and returns what it was promised, and how long ago; none
// where nothing was said of it yet.
func (d *Desk) refresh(h *logv1.HeldShare) (promise shares.Promise, age time.Duration) {
	now, id := d.clock.Now(), idOf(h)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seats[id]
	if s == nil {
		if d.closed || len(d.seats) >= seatsMax {
			return shares.Promise{}, 0
		}
		s = &seat{}
		d.seats[id] = s
	}
	s.heard = now
	if h.GetLeft() != s.left || h.GetVersion() > s.held {
		s.said = false
	}
	s.left, s.held = h.GetLeft(), max(h.GetVersion(), s.held)
	if !d.begun {
		d.begun = true
		d.joined.Go(d.run)
	}
	if s.left {
		// Should it come back, nothing of before counts.
		s.promise, s.known, s.held = shares.Promise{}, false, 0
	}
	return s.promise, now - s.sent
}

// run speaks of sessions until the desk is closed.
func (d *Desk) run() {
	rounds := time.NewTicker(round)
	defer rounds.Stop()
	for {
		select {
		case <-rounds.C:
		case <-d.life.Done():
			return
		}
		for _, part := range d.due() {
			d.say(part)
		}
	}
}

// due are those of whom something is to be said, in parts that make an operation each.
func (d *Desk) due() [][]*logv1.HeldShare {
	now, all := d.list(d.clock.Now())
	stale := d.stale(all)
	if !slices.ContainsFunc(all, spoken.isUrgent) && len(stale) == 0 {
		return nil
	}
	var parts [][]*logv1.HeldShare
	size := 0
	for i, s := range all {
		if !s.urgent && !stale[i] && now-s.sent < together {
			continue
		}
		n := s.SizeVT()
		if last := len(parts) - 1; last >= 0 && size+n <= bytesMost && len(parts[last]) < heldMost {
			parts[last] = append(parts[last], s.HeldShare)
			size += n
			continue
		}
		parts, size = append(parts, []*logv1.HeldShare{s.HeldShare}), n
	}
	return parts
}

// spoken is what can be said of a session.
type spoken struct {
	*logv1.HeldShare
	// urgent: it can't wait. sent is when the session was spoken of last.
	urgent bool
	sent   time.Duration
}

func (s spoken) isUrgent() bool { return s.urgent }

// list are those of whom can be spoken at now, without those that have gone silent.
func (d *Desk) list(now time.Duration) (time.Duration, []spoken) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.seats, func(_ shares.ID, s *seat) bool { return now-s.heard > silentAfter && !s.left })
	all := make([]spoken, 0, len(d.seats))
	for id, s := range d.seats {
		all = append(all, spoken{
			&logv1.HeldShare{Limit: id.Limit, Session: id.Session[:], Owner: id.Owner, Version: s.held, Left: s.left},
			!s.said || !s.known || now-s.sent >= keepAfter, s.sent,
		})
	}
	return now, all
}

func idOf(h *logv1.HeldShare) shares.ID {
	return shares.ID{Limit: h.GetLimit(), Session: [16]byte(h.GetSession()), Owner: h.GetOwner()}
}

// stale are those, by position, to whom the authority would promise something else by
// now, as far as this node has applied. Only where sessions have come or gone, or hold
// other promises, can that be.
func (d *Desk) stale(all []spoken) map[int]bool {
	if len(all) == 0 {
		return nil
	}
	found := make(map[int]bool)
	err := d.node.View(d.life, true, func(m *fsm.Machine, _ bucket.Instant) {
		changed := make(map[string]bool)
		for i, s := range all {
			limit := s.GetLimit()
			if _, looked := changed[limit]; !looked {
				var now pool
				now.sessions, now.promised = m.Shares().Sessions(limit)
				changed[limit], d.pools[limit] = now != d.pools[limit], now
			}
			if changed[limit] && !s.GetLeft() && m.Shares().Stale(idOf(s.HeldShare), s.GetVersion()) {
				found[i] = true
			}
		}
		maps.DeleteFunc(d.pools, func(limit string, _ pool) bool { _, looked := changed[limit]; return !looked })
	})
	if err != nil {
		return nil
	}
	return found
}

// pool is what the authority has promised of a limit.
type pool struct {
	sessions int
	promised int64
}

// say speaks of some sessions.
func (d *Desk) say(held []*logv1.HeldShare) {
	ctx, cancel := context.WithTimeout(d.life, sayWithin)
	defer cancel()
	sent := d.clock.Now()
	result, err := d.node.Do(ctx, &logv1.Operation{
		Kind: &logv1.Operation_ReportShares{ReportShares: &logv1.ReportShares{Held: held}},
	}, 0)
	promises := result.GetShares().GetPromises()
	if err != nil || len(promises) != len(held) {
		// It is said again in the next round: what may have been heard twice does no harm.
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, h := range held {
		id := idOf(h)
		s := d.seats[id]
		switch {
		case s == nil || s.left != h.GetLeft():
		case s.left:
			delete(d.seats, id)
		default:
			s.said = s.held == h.GetVersion()
			s.promise = shares.Promise{Version: promises[i].GetVersion(), PPM: promises[i].GetPpm()}
			s.sent, s.known = sent, true
		}
	}
}
