// Package holder is a client of a simulated world that holds slots over a session.
package holder

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

const (
	// Grace is for how long a session outlives its connection.
	Grace = time.Second
	// slotLife is how long a holder renews for.
	slotLife = 2 * time.Second
	// slotWait is how long it waits for slots.
	slotWait = 2 * time.Second
)

// Forever is more tries than there is time for.
const Forever = 1_000_000

// Config is what a holder needs of its world.
type Config struct {
	Stage *stage.Stage
	Host  *stage.Host
	Judge *judge.Judge
	Stats *tally.Stats
	Trap  trap.Kind
	Name  string
	// Busy says that anything is asked for.
	Busy func() bool
	// NextID is a lease id. Persist sends an operation until it has an answer or tries are
	// used up, Wait one that may wait, and both call done once: with nil where nothing came.
	NextID  func(kind string) []byte
	Persist func(op *logv1.Operation, tries int, done func(*logv1.Result))
	Wait    func(op *logv1.Acquire, most time.Duration, done func(*logv1.Result))
}

// Holder takes slots over a session, renews them as long as it works, and gives them
// back or goes without a word. Its session goes with its connection, unless it comes
// back over another one in time.
type Holder struct {
	Config
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
	*Holder
	id       []byte
	sequence uint64
	// end is when its life is over, on the holder's clock.
	end    time.Duration
	closed bool
}

// New is one that has not started.
func New(c Config) *Holder {
	h := &Holder{Config: c, session: make([]byte, 16), connection: 1}
	copy(h.session, "session-"+c.Name)
	return h
}

// Start has it begin to act after a while.
func (h *Holder) Start(after time.Duration) { h.Stage.At(h.Host, after, h.act) }

// HangUp breaks its connection, if it has one, and tells those who may hear of it.
func (h *Holder) HangUp(tell func(session []byte, connection uint64)) {
	if h.broken {
		return
	}
	h.Stats.HungUp++
	h.Stage.Trace("connection %d of %s breaks", h.connection, h.Name)
	h.lost, h.broken = h.Host.Boot(), true
	tell(h.session, h.connection)
	h.Stage.At(h.Host, h.Stage.Between(20*time.Millisecond, 2*Grace), h.comeBack)
}

// inTime says that the session outlives the loss of its connection so far, by what the
// holder knows.
func (h *Holder) inTime() bool {
	return !h.broken || h.Trap == trap.HeldTooLong || h.Host.Boot() < h.lost+Grace-Grace/1000
}

func (s *slot) believes() bool { return !s.closed && s.Host.Boot() < s.end && s.inTime() }

func (h *Holder) act() {
	s := h.Stage
	s.At(h.Host, s.Between(20*time.Millisecond, 300*time.Millisecond), h.act)
	if h.Busy() && !h.broken && !h.asking {
		h.ask()
	}
}

func (h *Holder) ask() {
	op := &logv1.Acquire{
		LeaseId: h.NextID("t"), Client: h.Name, Track: true, Session: h.session, Connection: h.connection,
		Charges: rules.Charges(rules.Gate, "", "slots", h.Stage.Amount(1, 2)),
	}
	sent := h.Host.Boot()
	h.asking = true
	done := func(r *logv1.Result) {
		h.asking = false
		a := r.GetAcquire()
		switch {
		case a == nil, a.GetGranted() && (h.broken || h.connection != op.GetConnection()):
			// Over a connection that has broken nothing is taken.
			h.release(op.GetLeaseId(), 3)
		case !a.GetGranted():
			h.Stats.Denied++
		case a.GetState() == logv1.LeaseState_LEASE_STATE_OPEN:
			h.take(op, sent, time.Duration(a.GetTtl()))
		}
	}
	if h.Stage.Chance(2) {
		h.Wait(op, slotWait, done)
		return
	}
	h.Persist(rules.Acquire(op), 3, done)
}

// take begins to hold.
func (h *Holder) take(op *logv1.Acquire, sent, ttl time.Duration) {
	s := h.Stage
	one := &slot{Holder: h, id: op.GetLeaseId(), end: sent + ttl - ttl/1000}
	if !one.believes() {
		return
	}
	h.Stats.Slots++
	h.slots = append(h.slots, one)
	h.Judge.Hold(s.Real(), judge.Holder{
		Who: h.Name, Limit: rules.Gate, ID: one.id, Amount: op.GetCharges()[0].GetAmount(), Believes: one.believes,
	})
	s.At(h.Host, s.Between(ttl/4, ttl-ttl/4), one.renew)
	if s.Chance(5) {
		// It forgets, and its slots come back by themselves.
		return
	}
	s.At(h.Host, s.Between(50*time.Millisecond, 2*ttl), one.giveBack)
}

// renew prolongs its life, again and again, and once in a while too late (T28).
func (s *slot) renew() {
	stage := s.Stage
	if s.closed || !s.Busy() {
		return
	}
	s.sequence++
	sent, over := s.Host.Boot(), s.connection
	op := &logv1.Renew{
		LeaseId: s.id, Ttl: int64(slotLife), Sequence: s.sequence, Session: s.session, Connection: over,
	}
	s.Stats.Renewed++
	s.Persist(&logv1.Operation{Kind: &logv1.Operation_Renew{Renew: op}}, 3, func(r *logv1.Result) {
		// What was lost stays lost.
		sure := s.believes() && over == s.connection && !s.broken
		switch lease := r.GetLease(); {
		case sure && r.GetRefusal() != nil:
			s.Judge.Complain("slots", "%s holds %s, and its renewal %d is refused: %v", s.Name, s.id, op.GetSequence(),
				r)
		case sure && lease.GetState() == logv1.LeaseState_LEASE_STATE_OPEN:
			ttl := time.Duration(lease.GetTtl())
			s.end = max(s.end, sent+ttl-ttl/1000)
		}
		pause := stage.Between(slotLife/8, slotLife/2)
		if stage.Chance(4) {
			pause = max(0, s.end-s.Host.Boot()) + stage.Between(0, slotLife/4)
		}
		if s.sequence < 5 {
			stage.At(s.Host, pause, s.renew)
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
	if s.Stage.Chance(2) {
		s.release(s.id, 6)
		return
	}
	op := &logv1.Settle{LeaseId: s.id}
	s.Persist(&logv1.Operation{Kind: &logv1.Operation_Settle{Settle: op}}, 6, func(*logv1.Result) {})
}

// comeBack says that the session goes on over a newer connection.
func (h *Holder) comeBack() {
	h.connection++
	op := &logv1.Operation{Kind: &logv1.Operation_EndSession{EndSession: &logv1.EndSession{
		Session: h.session, Connection: h.connection, Resumed: true,
	}}}
	h.Persist(op, Forever, func(*logv1.Result) {
		if h.inTime() {
			h.Stats.Resumed++
		} else {
			h.giveUp()
		}
		h.broken = false
	})
}

func (h *Holder) release(id []byte, tries int) {
	op := &logv1.Operation{Kind: &logv1.Operation_Release{Release: &logv1.Release{LeaseId: id, Client: h.Name}}}
	h.Persist(op, tries, func(*logv1.Result) {})
}

// giveUp lets go of what may have come back.
func (h *Holder) giveUp() {
	for _, s := range h.slots {
		s.closed = true
	}
	h.slots = nil
}
