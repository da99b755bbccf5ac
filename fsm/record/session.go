package record

import (
	"bytes"
	"cmp"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/frames"
)

const tagSession = 12

// SessionKey names a session. The owner is a part of it: nobody can end the session
// of another credential.
type SessionKey struct {
	ID    SessionID
	Owner string
}

// Compare orders keys.
func (k *SessionKey) Compare(o *SessionKey) int {
	return cmp.Or(bytes.Compare(k.ID[:], o.ID[:]), strings.Compare(k.Owner, o.Owner))
}

// Session is a client's session that holds slots.
type Session struct {
	SessionKey
	// Connection is the highest one that was heard of.
	Connection uint64
	// Ends is when its slots come back, 0 while it has not ended.
	Ends bucket.Instant
}

// Sum is the digest of the record.
func (s *Session) Sum() uint64 {
	sum := digest.New(tagSession)
	sum.Text(string(s.ID[:]))
	sum.Text(s.Owner)
	sum.Word(s.Connection)
	sum.Int(int64(s.Ends))
	return sum.Value()
}

// Save is the session for a snapshot.
func (s *Session) Save() *logv1.SnapshotSession {
	return &logv1.SnapshotSession{Session: s.ID[:], Owner: s.Owner, Connection: s.Connection, Ends: int64(s.Ends)}
}

// LoadSession makes a session of what Save made, and checks all that can be seen
// without other records. The error is a frames.ErrCorrupt.
func LoadSession(saved *logv1.SnapshotSession) (Session, error) {
	if len(saved.GetSession()) != len(SessionID{}) {
		return Session{}, frames.Corrupt("session id of %d bytes", len(saved.GetSession()))
	}
	if err := check.Text("owner", saved.GetOwner(), 0, check.MaxText); err != nil {
		return Session{}, frames.Corrupt("session %x: %v", saved.GetSession(), err)
	}
	if ends := saved.GetEnds(); ends < 0 || ends > int64(check.LastInstant+bucket.Instant(check.MaxGrace)) {
		return Session{}, frames.Corrupt("session %x: ends at %d", saved.GetSession(), ends)
	}
	return Session{
		SessionKey: SessionKey{ID: SessionID(saved.GetSession()), Owner: saved.GetOwner()},
		Connection: saved.GetConnection(), Ends: bucket.Instant(saved.GetEnds()),
	}, nil
}
