package lease_test

import (
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/lease"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/state"
)

// TestG10SessionsAreBounded: beyond the bound a lease is tied to no session, and those
// that are known go on.
func TestG10SessionsAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		s := state.New()
		book := lease.New(s, &effect.List{})
		key := func(i int) record.SessionKey {
			return record.SessionKey{ID: record.SessionID{byte(i), byte(i >> 8), byte(i >> 16), 1}}
		}
		for i := range state.MaxSessions {
			if !book.Join(key(i), 1) {
				t.Fatalf("session %d of %d is refused", i, state.MaxSessions)
			}
		}
		if book.Join(key(state.MaxSessions), 1) || s.Sessions() != state.MaxSessions {
			t.Errorf("%d sessions, want %d", s.Sessions(), state.MaxSessions)
		}
		if !book.Join(key(7), 2) || s.FindSession(key(7)).Connection != 2 {
			t.Error("a session that is known is refused")
		}
		if s.Hash() != s.Recount() {
			t.Errorf("hash %016x, recount %016x", s.Hash(), s.Recount())
		}
	})
}

// TestSessionsOnTheWire: an id is sixteen bytes, not all zero.
func TestSessionsOnTheWire(t *testing.T) {
	t.Parallel()
	for name, id := range map[string][]byte{
		"short": {1, 2, 3}, "zeros": make([]byte, 16), "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := lease.New(state.New(), &effect.List{})
			if _, err := book.EndSession(&logv1.EndSession{Session: id}); err == nil {
				t.Errorf("%x: ended", id)
			}
		})
	}
}
