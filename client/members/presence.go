package members

import (
	"context"
	"time"

	"github.com/quorlease/quorlease/client/session"
)

// presenceAfter is how long a stream that was lost has for being opened again, before
// another node is told that this process is still there.
const presenceAfter = 500 * time.Millisecond

// presence tells nodes that this process is there although a stream has ended. There
// is a stream to each of them, and one that has lost its own takes the process for
// gone, with what it holds, unless a newer stream is heard of (A13).
type presence struct {
	// lost has room for one signal: a stream has ended.
	lost chan struct{}
	// newest is the newest stream that there was when one was lost last; guarded by
	// the mutex of Members.
	newest uint64
	// extra was opened for no other reason. It belongs to the goroutine.
	extra *session.Session
}

// missLocked notes that a stream has ended.
func (m *Members) missLocked() {
	m.presence.newest = m.streams.Load()
	signal(m.presence.lost)
}

// stay sees to it, until Close, that some stream is newer than what was lost.
func (m *Members) stay() {
	defer func() { m.replaceExtra(nil) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.presence.lost:
		case <-m.life.Done():
			return
		}
		for missing := true; missing; {
			timer.Reset(presenceAfter)
			select {
			case <-timer.C:
			case <-m.life.Done():
				return
			}
			missing = !m.isHeard() && !m.appear()
		}
	}
}

// isHeard says whether a stream is open that was opened after the last loss.
func (m *Members) isHeard() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	newest := m.presence.newest
	if e := m.presence.extra; e != nil && alive(e) && e.Connection() > newest {
		return true
	}
	for _, l := range m.links {
		if l.usableLocked() && l.session.Connection() > newest {
			return true
		}
	}
	return false
}

// appear opens a stream beside the one to the node that is asked now. It is true
// where nothing is left to do: who reaches nobody has a newer stream as soon as it
// does.
func (m *Members) appear() bool {
	best := m.best.Load()
	if best == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(m.life, m.config.ConnectMax)
	defer cancel()
	s, err := session.Open(ctx, best.session.Conn(), m.hello())
	if err != nil {
		return false
	}
	m.replaceExtra(s)
	return true
}

// replaceExtra ends the extra stream that was there: the end of an older one says
// nothing.
func (m *Members) replaceExtra(s *session.Session) {
	if e := m.presence.extra; e != nil {
		_ = e.Close()
	}
	m.presence.extra = s
}

// hello is how the next stream begins.
func (m *Members) hello() session.Hello {
	return session.Hello{
		Client: m.config.Client, SessionID: m.config.SessionID, Connection: m.streams.Add(1), Direct: m.config.Direct,
	}
}
