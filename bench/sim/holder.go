package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

const (
	// grace is for how long a session outlives its connection.
	grace = time.Second
	// slotLife is how long a holder renews for.
	slotLife = 2 * time.Second
	// slotWait is how long it waits for slots.
	slotWait = 2 * time.Second
)

// holder takes slots over a session, renews them as long as it works, and gives them
// back or goes without a word. Its session goes with its connection, unless it comes
// back over another one in time.
type holder struct {
	client     *client
	session    []byte
	connection uint64
	// lost is when the connection broke, on its clock, and broken that it did.
	lost   time.Duration
	broken bool
	// asking: an acquire is under way; slots are what it has.
	asking bool
	slots  []*slot
}

// slot is one lease of slots in a holder's hands.
type slot struct {
	*holder
	id       []byte
	sequence uint64
	// end is when its life is over, on the holder's clock.
	end    time.Duration
	closed bool
}

func newHolder(c *client) *holder {
	h := &holder{client: c, session: make([]byte, 16), connection: 1}
	copy(h.session, "session-"+c.name)
	return h
}

func (h *holder) start() { h.client.world.stage.At(h.client.host, startFor/2, h.act) }

// inTime says that the session outlives the loss of its connection so far, by what the
// holder knows.
func (h *holder) inTime() bool {
	return !h.broken || h.client.world.trap == trap.HeldTooLong || h.client.host.Boot() < h.lost+grace-grace/1000
}

func (s *slot) believes() bool { return !s.closed && s.client.host.Boot() < s.end && s.inTime() }

func (h *holder) act() {
	s := h.client.world.stage
	s.At(h.client.host, s.Between(20*time.Millisecond, 300*time.Millisecond), h.act)
	if h.client.world.busy && !h.broken && !h.asking {
		h.ask()
	}
}

func (h *holder) ask() {
	c := h.client
	op := &logv1.Acquire{
		LeaseId: c.nextID("t"), Client: c.name, Track: true, Session: h.session, Connection: h.connection,
		Charges: rules.Charges(rules.Gate, "", "slots", c.world.stage.Amount(1, 2)),
	}
	sent := c.host.Boot()
	h.asking = true
	done := func(r reply) {
		h.asking = false
		a := r.result.GetAcquire()
		switch {
		case a == nil, a.GetGranted() && (h.broken || h.connection != op.GetConnection()):
			// Over a connection that has broken nothing is taken.
			c.release(op.GetLeaseId(), 3)
		case !a.GetGranted():
			c.world.stats.Denied++
		case a.GetState() == logv1.LeaseState_LEASE_STATE_OPEN:
			h.take(op, sent, time.Duration(a.GetTtl()))
		}
	}
	if c.world.stage.Chance(2) {
		c.wait(op, slotWait, done)
		return
	}
	c.persist(rules.Acquire(op), 3, done)
}

// take begins to hold.
func (h *holder) take(op *logv1.Acquire, sent, ttl time.Duration) {
	c, s := h.client, h.client.world.stage
	one := &slot{holder: h, id: op.GetLeaseId(), end: sent + ttl - ttl/1000}
	if !one.believes() {
		return
	}
	c.world.stats.Slots++
	h.slots = append(h.slots, one)
	c.world.judge.Hold(s.Real(), judge.Holder{
		Who: c.name, Limit: rules.Gate, ID: one.id, Amount: op.GetCharges()[0].GetAmount(), Believes: one.believes,
	})
	s.At(c.host, s.Between(ttl/4, ttl-ttl/4), one.renew)
	if s.Chance(5) {
		// It forgets, and its slots come back by themselves.
		return
	}
	s.At(c.host, s.Between(50*time.Millisecond, 2*ttl), one.giveBack)
}

// renew prolongs its life, again and again, and once in a while too late (T28).
func (s *slot) renew() {
	c, stage := s.client, s.client.world.stage
	if s.closed || !c.world.busy {
		return
	}
	s.sequence++
	sent, over := c.host.Boot(), s.connection
	op := &logv1.Renew{
		LeaseId: s.id, Ttl: int64(slotLife), Sequence: s.sequence, Session: s.session, Connection: over,
	}
	c.world.stats.Renewed++
	c.persist(&logv1.Operation{Kind: &logv1.Operation_Renew{Renew: op}}, 3, func(r reply) {
		// What was lost stays lost.
		sure := s.believes() && over == s.connection && !s.broken
		switch lease := r.result.GetLease(); {
		case sure && r.result.GetRefusal() != nil:
			c.world.judge.Complain("slots", "%s holds %s, and its renewal %d is refused: %v", c.name, s.id, op.GetSequence(),
				r.result)
		case sure && lease.GetState() == logv1.LeaseState_LEASE_STATE_OPEN:
			ttl := time.Duration(lease.GetTtl())
			s.end = max(s.end, sent+ttl-ttl/1000)
		}
		pause := stage.Between(slotLife/8, slotLife/2)
		if stage.Chance(4) {
			pause = max(0, s.end-c.host.Boot()) + stage.Between(0, slotLife/4)
		}
		if s.sequence < 5 {
			stage.At(c.host, pause, s.renew)
		}
	})
}

// giveBack releases or settles, late if it has been held up: nothing of another's is
// freed by that.
func (s *slot) giveBack() {
	if s.closed {
		return
	}
	s.closed = true
	if s.client.world.stage.Chance(2) {
		s.client.release(s.id, 6)
		return
	}
	op := &logv1.Settle{LeaseId: s.id}
	s.client.persist(&logv1.Operation{Kind: &logv1.Operation_Settle{Settle: op}}, 6, func(reply) {})
}

// hangUp breaks the connection of a holder. The nodes hear of it sooner or later, or
// never.
func (w *World) hangUp() {
	if len(w.holders) == 0 {
		return
	}
	h := w.holders[w.stage.Rand.IntN(len(w.holders))]
	if h.broken {
		return
	}
	w.stats.HungUp++
	w.stage.Trace("connection %d of %s breaks", h.connection, h.client.name)
	h.lost, h.broken = h.client.host.Boot(), true
	over := h.connection
	if w.trap == trap.EndedByID {
		// Whichever of its connections it is.
		over += 100
	}
	op := &logv1.Operation{Kind: &logv1.Operation_EndSession{EndSession: &logv1.EndSession{
		Session: h.session, Connection: over, Grace: int64(grace),
	}}}
	for range 1 + w.stage.Rand.IntN(2) {
		n := w.anyNode()
		w.stage.At(n.host, w.stage.Between(0, grace), func() { n.take(&call{op: op, from: n.host}) })
	}
	w.stage.At(h.client.host, w.stage.Between(20*time.Millisecond, 2*grace), h.comeBack)
}

// comeBack says that the session goes on over a newer connection.
func (h *holder) comeBack() {
	h.connection++
	op := &logv1.Operation{Kind: &logv1.Operation_EndSession{EndSession: &logv1.EndSession{
		Session: h.session, Connection: h.connection, Resumed: true,
	}}}
	h.client.persist(op, forever, func(reply) {
		if h.inTime() {
			h.client.world.stats.Resumed++
		} else {
			h.giveUp()
		}
		h.broken = false
	})
}

// giveUp lets go of what may have come back.
func (h *holder) giveUp() {
	for _, s := range h.slots {
		s.closed = true
	}
	h.slots = nil
}

// keepHangingUp breaks connections as long as there are faults.
func (w *World) keepHangingUp() {
	w.stage.At(nil, w.stage.Between(500*time.Millisecond, 3*time.Second), func() {
		if w.faulty {
			w.hangUp()
		}
		w.keepHangingUp()
	})
}
