package judge

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// slots checks limits of concurrency. In the log: what is in use by grants, less what
// was given back, ended or went with its session, is never more than there are, and
// nobody is refused what is free. In real time: those who believe that they hold
// slots never hold more together.
type slots struct {
	judge    *Judge
	most     map[string]int64
	leases   map[string]*slotLease
	open     map[string]*slotLease
	sessions map[string]*slotSession
	holders  []Holder
}

// slotLease is what one lease has of one limit's slots.
type slotLease struct {
	id, limit, session string
	amount             int64
	// until is when it ends, in authority time.
	until int64
}

// slotSession is a session with open leases; ends is when they go with it, 0 while it
// is there.
type slotSession struct {
	connection uint64
	ends       int64
}

// Holder is somebody who believes to hold slots.
type Holder struct {
	Who, Limit string
	ID         []byte
	Amount     int64
	// Believes says whether it still does so, by its own clock.
	Believes func() bool
}

// Slots watches over a limit of concurrency.
func (j *Judge) Slots(limit *logv1.Limit) {
	j.slots.most[limit.GetName()] = limit.GetDimensions()[0].GetBurst()
}

// Hold takes a holder who has just been told that it holds.
func (j *Judge) Hold(now time.Duration, h Holder) {
	s, sum := &j.slots, int64(0)
	kept := s.holders[:0]
	for _, other := range append(s.holders, h) {
		if other.Believes() {
			kept = append(kept, other)
			if other.Limit == h.Limit {
				sum += other.Amount
			}
		}
	}
	s.holders = kept
	if sum > s.most[h.Limit] {
		j.Complain("slots", "at %v %s holds %d of %s, and with that %d are believed to be held, of %d", now, h.Who,
			h.Amount, h.Limit, sum, s.most[h.Limit])
	}
}

// InUse is how many slots of a limit are in use.
func (j *Judge) InUse(limit string) (sum int64) {
	// The order does not matter: it is a sum.
	for _, l := range j.slots.open {
		if l.limit == limit {
			sum += l.amount
		}
	}
	return sum
}

// advance ends what is over.
func (s *slots) advance(now int64) {
	// Each is its own: the order does not matter.
	for id, l := range s.open {
		session := s.sessions[l.session]
		if l.until <= now || session != nil && session.ends != 0 && session.ends <= now {
			delete(s.open, id)
		}
	}
	s.forget()
}

// forget lets sessions go that hold nothing.
func (s *slots) forget() {
	for id := range s.sessions {
		holds := false
		for _, l := range s.open {
			holds = holds || l.session == id
		}
		if !holds {
			delete(s.sessions, id)
		}
	}
}

func (s *slots) hear(id []byte, connection uint64) {
	if one := s.sessions[string(id)]; one != nil && connection > one.connection {
		one.connection, one.ends = connection, 0
	}
}

func (s *slots) take(now int64, op *logv1.Operation, result *logv1.Result) {
	lease := result.GetLease()
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Acquire:
		s.acquire(now, kind.Acquire, result.GetAcquire())
	case *logv1.Operation_Renew:
		if lease != nil && !lease.GetRepeated() {
			s.renew(now, kind.Renew, lease)
		}
	case *logv1.Operation_Release:
		if lease != nil {
			s.release(kind.Release.GetLeaseId(), lease)
		}
	case *logv1.Operation_Settle:
		if lease != nil && !kind.Settle.GetProgress() {
			delete(s.open, string(kind.Settle.GetLeaseId()))
			s.forget()
		}
	case *logv1.Operation_EndSession:
		if result.GetDone() != nil {
			s.end(now, kind.EndSession)
		}
	}
}

func (s *slots) acquire(now int64, op *logv1.Acquire, answer *logv1.AcquireResult) {
	if len(op.GetCharges()) != 1 || answer == nil {
		return
	}
	c := op.GetCharges()[0]
	most, watched := s.most[c.GetLimit()]
	if !watched {
		return
	}
	used, id := s.judge.InUse(c.GetLimit()), string(op.GetLeaseId())
	switch {
	case answer.GetRepeated():
		if s.open[id] != nil {
			s.hear(op.GetSession(), op.GetConnection())
		}
	case answer.GetGranted():
		if used+c.GetAmount() > most {
			s.judge.Complain("slots", "%s is granted %d of %s, of which %d of %d are in use", name(op.GetLeaseId()),
				c.GetAmount(), c.GetLimit(), used, most)
		}
		l := &slotLease{id, c.GetLimit(), string(op.GetSession()), c.GetAmount(), now + answer.GetTtl()}
		s.leases[id], s.open[id] = l, l
		if s.sessions[l.session] == nil && l.session != "" {
			s.sessions[l.session] = &slotSession{connection: op.GetConnection()}
		}
		s.hear(op.GetSession(), op.GetConnection())
	default:
		for _, d := range answer.GetDenials() {
			if d.GetReason() == logv1.Reason_REASON_CONCURRENCY && used+c.GetAmount()+c.GetKeep() <= most {
				s.judge.Complain("slots", "%s is refused %d of %s, of which %d of %d are in use", name(op.GetLeaseId()),
					c.GetAmount(), c.GetLimit(), used, most)
			}
		}
	}
}

// renew checks that nothing that has ended lives again (T28).
func (s *slots) renew(now int64, op *logv1.Renew, answer *logv1.LeaseResult) {
	l := s.leases[string(op.GetLeaseId())]
	if l == nil {
		return
	}
	if s.open[l.id] == nil {
		s.judge.Complain("slots", "%s had ended, and is renewed", name(op.GetLeaseId()))
	}
	l.until = now + answer.GetTtl()
	s.hear(op.GetSession(), op.GetConnection())
}

// release checks that slots come back once, and were there until then.
func (s *slots) release(id []byte, answer *logv1.LeaseResult) {
	l := s.leases[string(id)]
	if l == nil {
		return
	}
	open := s.open[l.id] != nil
	freed := answer.GetState() == logv1.LeaseState_LEASE_STATE_RELEASED && !answer.GetRepeated()
	if open != freed {
		s.judge.Complain("slots", "%s is open: %v, and a release of it is answered %v", name(id), open, answer)
	}
	delete(s.open, l.id)
	s.forget()
}

func (s *slots) end(now int64, op *logv1.EndSession) {
	one := s.sessions[string(op.GetSession())]
	switch {
	case one == nil:
	case op.GetResumed():
		s.hear(op.GetSession(), op.GetConnection())
	case op.GetConnection() == one.connection && one.ends != 0:
		one.ends = min(one.ends, now+op.GetGrace())
	case op.GetConnection() >= one.connection:
		one.connection, one.ends = op.GetConnection(), now+op.GetGrace()
	}
}
