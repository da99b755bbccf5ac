package state

import (
	"bytes"
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
)

// MaxSessions bounds the sessions that hold slots (G10). With the longest names they
// are half a kilobyte each.
const MaxSessions = 100_000

// Session is a session that holds slots, at work. It is replaced as a whole, so that
// it is not touched and sealed. It is there as long as a lease of its is open.
type Session struct {
	record.Session
	generation uint32
	place      int32
	digest     uint64
	// leases are the open ones that are tied to it. They follow from the leases, and
	// are no part of a snapshot or digest.
	leases map[record.LeaseID]struct{}
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (s *Session) Key() record.SessionKey { return s.SessionKey }
func (s *Session) Generation() *uint32    { return &s.generation }
func (s *Session) Place() *int32          { return &s.place }
func (s *Session) Before(o *Session) bool { return s.Compare(&o.SessionKey) < 0 }

func (s *Session) Clone() *Session {
	c := *s
	return &c
}

// Leases are the ids of the open leases that are tied to the session, in order.
func (s *Session) Leases() []record.LeaseID {
	ids := make([]record.LeaseID, 0, len(s.leases))
	// The order does not matter: they are sorted below.
	for id := range s.leases {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b record.LeaseID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// FindSession is the session with a key, or nil. It must not be changed.
func (s *State) FindSession(key record.SessionKey) *Session { return s.sessions.Find(key) }

// Sessions is the number of sessions that hold slots.
func (s *State) Sessions() int { return s.sessions.Len() }

// SetSession makes one what is known of a session. One that is new has to get a
// lease in the same operation. The caller sees to it that there are at most
// MaxSessions.
func (s *State) SetSession(one record.Session) {
	was := s.sessions.Find(one.SessionKey)
	if was == nil {
		was = &Session{Session: one, leases: make(map[record.LeaseID]struct{})}
		s.sessions.Insert(was)
	} else {
		s.sum -= was.digest
		own := s.sessions.Own(was)
		if own != was {
			s.dueSessions.Renew(own)
		}
		was = own
		was.Session = one
	}
	was.digest = one.Sum()
	s.sum += was.digest
	due := one.Ends
	if due == 0 {
		due = lineage.Never
	}
	s.dueSessions.Set(was, int64(due))
}

// FirstToEnd is the session whose slots come back first, and when; lineage.Never
// where none has ended.
func (s *State) FirstToEnd() (*Session, bucket.Instant) {
	one, at := s.dueSessions.Top()
	return one, bucket.Instant(at)
}

// tie makes an open lease end with its session.
func (s *State) tie(l *Lease) {
	if l.Session == (record.SessionID{}) {
		return
	}
	s.sessions.Find(l.SessionKey()).leases[l.ID] = struct{}{}
}

// untie lets a lease go that has ended, and its session with the last one.
func (s *State) untie(l *Lease) {
	if l.Session == (record.SessionID{}) {
		return
	}
	one := s.sessions.Find(l.SessionKey())
	delete(one.leases, l.ID)
	if len(one.leases) > 0 {
		return
	}
	s.sum -= one.digest
	s.dueSessions.Remove(one)
	s.sessions.Remove(one)
}

func (r *restoring) addSession(saved *logv1.SnapshotSession) error {
	one, err := record.LoadSession(saved)
	switch {
	case err != nil:
		return err
	case r.FindSession(one.SessionKey) != nil || r.Sessions() >= MaxSessions:
		return frames.Corrupt("session %x: is there twice, or more than %d", one.ID, MaxSessions)
	}
	r.SetSession(one)
	return nil
}

// checkSessions: a session without a lease would never go.
func (r *restoring) checkSessions() error {
	// The order does not matter: any one is corrupt.
	for one := range r.sessions.All() {
		if len(one.leases) == 0 {
			return frames.Corrupt("session %x: holds nothing", one.ID)
		}
	}
	return nil
}
