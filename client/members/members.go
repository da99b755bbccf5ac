// Package members finds the nodes of a cluster and keeps a session to each.
//
// It begins with some addresses and learns the others from any node that answers.
// One goroutine a node connects, opens a session, asks for the node's status from
// time to time, and begins again when the session ends: nobody who wants a
// decision ever waits for a node that is away while another one is there. Which
// node leads is a hint that orders them, and nothing more.
package members

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/session"
)

var (
	// ErrUnreachable: every node that is known was tried and failed, just now.
	ErrUnreachable = errors.New("no node can be reached")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("closed")
)

// Endpoint is a node.
type Endpoint struct {
	// ID is its name, empty where nobody has told it.
	ID string
	// Address is where it is reached.
	Address string
}

// Members keeps the sessions. It is safe for concurrent use.
type Members struct {
	config Config
	life   context.Context //nolint:containedctx // the life of the goroutines, not of a call
	cancel context.CancelFunc
	joined sync.WaitGroup
	// best is where calls go: read by each, so without the mutex.
	best atomic.Pointer[choice]
	// level are the nodes that are as good where it does not matter who leads.
	level atomic.Pointer[[]*choice]
	// sound: they are in no doubt.
	sound atomic.Bool
	// streams counts the sessions that were opened, each with a number of its own.
	streams  atomic.Uint64
	presence presence
	// told has room for one signal: state has changed.
	told chan struct{}

	mu sync.Mutex
	// links are the nodes known, in the order in which they became known.
	links []*link
	// changed is closed, and replaced, when those who wait should look again.
	changed chan struct{}
	closed  bool
	state   State
	// cluster is the id of the cluster that the nodes are of, once one has told.
	cluster string
	// why is what ErrUnreachable is told with, set while nobody can be reached.
	why error
	// trouble is when a node was last lost or doubted.
	trouble time.Time
}

// choice is a node to ask. It is not changed.
type choice struct {
	session  *session.Session
	endpoint Endpoint
	link     *link
}

// New starts to connect in the background.
func New(config Config) (*Members, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("members: %w", err)
	}
	m := &Members{config: config, told: make(chan struct{}, 1), changed: make(chan struct{})}
	m.presence.lost = make(chan struct{}, 1)
	m.life, m.cancel = context.WithCancel(context.Background())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Since = time.Now()
	for _, address := range config.Endpoints {
		m.addLocked(address, true)
	}
	m.joined.Go(m.stay)
	if config.Changed != nil {
		m.joined.Go(m.tell)
	}
	return m, nil
}

// Close ends every session and waits for every goroutine. Callers that wait for a
// session get ErrClosed. It is idempotent.
func (m *Members) Close() error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		m.best.Store(nil)
		close(m.changed)
	}
	m.mu.Unlock()
	m.cancel()
	m.joined.Wait()
	return nil
}

// Session returns a session to the node that should be asked now. Where there is
// none it waits until ctx ends, unless every node that is known just failed:
// that is ErrUnreachable, at once. The session may end at any time; it is
// Members' and must not be closed.
func (m *Members) Session(ctx context.Context) (*session.Session, Endpoint, error) {
	if c := m.best.Load(); c != nil && alive(c.session) {
		return c.session, c.endpoint, nil
	}
	for {
		m.mu.Lock()
		m.orderLocked(time.Now())
		changed, why, closed := m.changed, m.why, m.closed
		m.mu.Unlock()
		c := m.best.Load()
		switch {
		case closed:
			return nil, Endpoint{}, ErrClosed
		case c != nil:
			return c.session, c.endpoint, nil
		case why != nil:
			return nil, Endpoint{}, why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, Endpoint{}, fmt.Errorf("wait for a node: %w", ctx.Err())
		}
	}
}

// alive says whether a session has not ended.
func alive(s *session.Session) bool {
	select {
	case <-s.Ended():
		return false
	default:
		return true
	}
}

// doubtFor is how long others are asked rather than a node that failed a call.
const doubtFor = time.Second

// Failed tells what a call to a node ended with. If that speaks against the node
// the others come first for a second, and all are asked for their status at once.
// An error that is the call's own fault changes nothing, and neither does nil.
func (m *Members) Failed(e Endpoint, err error) {
	if !blames(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, l := range m.links {
		if l.address == e.Address {
			l.doubt = now.Add(doubtFor)
			reason := session.Reason(err)
			l.minority = reason == "NO_QUORUM"
			l.leaderless = l.leaderless || l.minority || reason == "NO_LEADER"
		}
	}
	m.troubleLocked(now)
}

// blames says whether an error speaks against the node that it came from.
func blames(err error) bool {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, session.ErrEnded), errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.Is(err, session.ErrUnsent):
		return false
	}
	return session.Blames(err)
}

// All returns the nodes that are known, those that were configured first.
func (m *Members) All() []Endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Endpoint, len(m.links))
	for i, l := range m.links {
		all[i] = Endpoint{l.id, l.address}
	}
	return all
}

// signal leaves a signal in a channel that has room for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
