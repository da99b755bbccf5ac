package sharing

import (
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/shares"
)

// Session is a client's session at the desk. It is safe for concurrent use.
type Session struct {
	desk  *Desk
	id    []byte
	owner string
}

// Session is the session with an id of 16 bytes and a credential.
func (d *Desk) Session(id []byte, owner string) *Session {
	return &Session{desk: d, id: id, owner: owner}
}

// Refresh hears what a session holds, and says what it is promised: at once, from what
// the authority said last. Of a limit that is not shared, as far as this node has
// applied, nothing is promised, and nothing is kept: a name costs nobody anything. The
// error names the field that is wrong.
func (s *Session) Refresh(r *quorleasev1.RefreshRequest) (*quorleasev1.RefreshResponse, error) {
	said, err := convert.Refresh(r, s.id, s.owner)
	if err != nil {
		return nil, err
	}
	shared := make([]bool, len(said.GetHeld()))
	err = s.desk.node.View(s.desk.life, true, func(m *fsm.Machine, _ bucket.Instant) {
		for i, h := range said.GetHeld() {
			shared[i] = shares.Shared(m.Limit(h.GetLimit()))
		}
	})
	answer := &quorleasev1.RefreshResponse{}
	for i, h := range said.GetHeld() {
		var promise shares.Promise
		var age time.Duration
		if err == nil && shared[i] {
			promise, age = s.desk.refresh(h)
		}
		answer.Shares = append(answer.Shares, convert.Promised(h.GetLimit(), promise, age))
	}
	return answer, nil
}
