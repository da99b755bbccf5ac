package lease

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// Session is the id of a session on the wire, all zeros where there is none. The
// error is a *refuse.Refused.
func Session(id []byte) (record.SessionID, error) {
	switch {
	case len(id) == 0:
		return record.SessionID{}, nil
	case len(id) != len(record.SessionID{}):
		return record.SessionID{}, refuse.Field("session", "%d bytes: must be %d", len(id), len(record.SessionID{}))
	case record.SessionID(id) == record.SessionID{}:
		return record.SessionID{}, refuse.Field("session", "all zeros: is no session")
	}
	return record.SessionID(id), nil
}

// Join makes the session one that a lease can be tied to, and says whether it can.
// Where there are as many as may be, the slots come back at the lease's end.
func (b *Book) Join(key record.SessionKey, connection uint64) bool {
	was := b.state.FindSession(key)
	if was == nil {
		if b.state.Sessions() >= state.MaxSessions {
			return false
		}
		b.state.SetSession(record.Session{SessionKey: key, Connection: connection})
		return true
	}
	b.hear(was, connection)
	return true
}

// Heard notes that a session is there over a connection, if it is one that holds
// something.
func (b *Book) Heard(session []byte, owner string, connection uint64) {
	id, err := Session(session)
	if err != nil {
		return
	}
	if was := b.state.FindSession(record.SessionKey{ID: id, Owner: owner}); was != nil {
		b.hear(was, connection)
	}
}

// hear notes that a session is there over a connection. One that is older than the
// last one was overtaken on its way, and so was the last one itself where it has
// ended: neither brings the session back. A client that does not number its
// connections is believed.
func (b *Book) hear(was *state.Session, connection uint64) {
	next := was.Session
	switch {
	case connection > next.Connection:
		next.Connection, next.Ends = connection, 0
	case connection == 0 && next.Connection == 0:
		next.Ends = 0
	}
	if next != was.Session {
		b.state.SetSession(next)
	}
}

// EndSession makes the slots of a session come back after a grace, unless the client
// comes back before. Of a session that holds none nothing is remembered.
func (b *Book) EndSession(op *logv1.EndSession) (*logv1.Result, error) {
	id, err := Session(op.GetSession())
	if err == nil {
		err = refuse.Text("owner", op.GetOwner(), 0, check.MaxText)
	}
	switch {
	case err != nil:
		return nil, err
	case id == record.SessionID{}:
		return nil, refuse.Field("session", "none: there must be one")
	case op.GetGrace() < 0 || op.GetGrace() > int64(check.MaxGrace):
		return nil, refuse.Field("grace", "%v: must be from 0s to %v", time.Duration(op.GetGrace()), check.MaxGrace)
	}
	done := &logv1.Result{Kind: &logv1.Result_Done{Done: &logv1.Done{}}}
	was := b.state.FindSession(record.SessionKey{ID: id, Owner: op.GetOwner()})
	switch {
	case was == nil:
		return done, nil
	case op.GetResumed():
		b.hear(was, op.GetConnection())
		return done, nil
	case op.GetConnection() < was.Connection:
		return done, nil
	}
	next := was.Session
	next.Connection, next.Ends = op.GetConnection(), b.state.Now+bucket.Instant(op.GetGrace())
	if was.Ends != 0 && op.GetConnection() == was.Connection {
		// It was said before: the slots wait no longer than they would have.
		next.Ends = min(was.Ends, next.Ends)
	}
	b.state.SetSession(next)
	return done, nil
}

// EndSessions ends the leases of sessions whose grace is over, at most so many.
func (b *Book) EndSessions(most int) {
	for most > 0 {
		one, at := b.state.FirstToEnd()
		if at > b.state.Now {
			return
		}
		for _, id := range one.Leases() {
			if most == 0 {
				return
			}
			most--
			b.abandon(b.state.FindLease(id))
		}
	}
}

// abandon ends a lease whose session has ended. With tokens it has ended unreported:
// they are charged in full, and an excess can still be booked.
func (b *Book) abandon(l *state.Lease) {
	if b.state.Now >= l.SettleUntil {
		b.Expire(l)
		return
	}
	l = b.state.TouchLease(l)
	b.charge(l)
	if l.OnlySlots() {
		b.state.EndLease(l, logv1.LeaseState_LEASE_STATE_RELEASED, b.state.Now)
		return
	}
	b.state.EndLease(l, logv1.LeaseState_LEASE_STATE_EXPIRED, b.state.Now)
	b.ended(l, "session")
}
