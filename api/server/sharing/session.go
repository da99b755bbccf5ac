package sharing

import (
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
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
// the authority said last. The error names the field that is wrong.
func (s *Session) Refresh(r *quorleasev1.RefreshRequest) (*quorleasev1.RefreshResponse, error) {
	said, err := convert.Refresh(r, s.id, s.owner)
	if err != nil {
		return nil, err
	}
	answer := &quorleasev1.RefreshResponse{}
	for _, h := range said.GetHeld() {
		promise, age := s.desk.refresh(h)
		answer.Shares = append(answer.Shares, convert.Promised(h.GetLimit(), promise, age))
	}
	return answer, nil
}
