package members

import (
	"errors"
	"fmt"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Reach is what can be said of a cluster from here.
type Reach int

const (
	// Unknown: no node was reached yet, and not every one was tried.
	Unknown Reach = iota
	// Unreachable: every node was tried and failed.
	Unreachable
	// Leaderless: nodes are reached, and none of them knows a leader. It is an
	// election, or they are cut off from a majority.
	Leaderless
	// Led: a node is reached that knows a leader.
	Led
)

// String is the word in lower case.
func (r Reach) String() string {
	switch r {
	case Unreachable:
		return "unreachable"
	case Leaderless:
		return "leaderless"
	case Led:
		return "led"
	case Unknown:
	}
	return "unknown"
}

// State is how the cluster looks from here.
type State struct {
	Reach Reach
	// Since is when Reach became what it is.
	Since time.Time
	// Leader is the node that leads. It has no address where nobody tells, and
	// nothing but an address's worth of trust: it is a hint.
	Leader Endpoint
	// Known and Reached count nodes.
	Known, Reached int
	// Err is why no node can be reached, while none can: it wraps ErrUnreachable.
	Err error
}

// Node is one node, as it looks from here.
type Node struct {
	Endpoint
	// Configured: it is one of the endpoints that Members began with.
	Configured bool
	// Reached: it answers.
	Reached bool
	// Leader: it leads, as far as is known.
	Leader bool
	// Err is why it is not reached, where it was tried.
	Err error
}

// State returns how the cluster looks now.
func (m *Members) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orderLocked(time.Now())
	return m.state
}

// Nodes returns what is known of every node, in the order of All.
func (m *Members) Nodes() []Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orderLocked(time.Now())
	nodes := make([]Node, len(m.links))
	for i, l := range m.links {
		nodes[i] = Node{
			Endpoint:   Endpoint{l.id, l.address},
			Configured: l.seed, Reached: l.usableLocked(),
			Leader: l.address == m.state.Leader.Address, Err: l.err,
		}
	}
	return nodes
}

// tell calls Changed until Close.
func (m *Members) tell() {
	last := State{}
	for {
		select {
		case <-m.told:
		case <-m.life.Done():
			return
		}
		m.mu.Lock()
		now := m.state
		m.mu.Unlock()
		if !now.same(last) {
			m.config.Changed(now)
		}
		last = now
	}
}

// same leaves the text of errors out.
func (s State) same(other State) bool {
	return s.Reach == other.Reach && s.Since.Equal(other.Since) && s.Leader == other.Leader &&
		s.Known == other.Known && s.Reached == other.Reached
}

// orderLocked chooses the node to ask and says how the cluster looks, after
// anything that could change that.
func (m *Members) orderLocked(now time.Time) {
	if m.closed {
		return
	}
	leader := m.leaderLocked()
	var best *link
	var usable []*link
	state := State{Reach: Unreachable, Leader: leader, Known: len(m.links)}
	led, untried, rank := false, false, 0
	for _, l := range m.links {
		if !l.usableLocked() {
			untried = untried || !l.failed
			continue
		}
		state.Reached++
		led = led || !l.leaderlessLocked()
		usable = append(usable, l)
		if r := l.rankLocked(now, leader); best == nil || r < rank {
			best, rank = l, r
		}
	}
	m.levelLocked(now, usable, leader)
	switch {
	case led:
		state.Reach = Led
	case best != nil:
		state.Reach = Leaderless
	case untried:
		// Some node is being tried, for the first time or because it was lost just now.
		// Nothing new is said before that is over.
		state.Reach = m.state.Reach
	}
	m.chooseLocked(best)
	m.becomeLocked(now, state, untried)
}

// chooseLocked sends calls to a node, or nowhere.
func (m *Members) chooseLocked(l *link) {
	old := m.best.Load()
	switch {
	case l == nil && old != nil:
		m.best.Store(nil)
	case l != nil:
		made := &choice{l.session, Endpoint{l.id, l.address}, l}
		if old == nil || *old != *made {
			m.best.Store(made)
			m.wakeLocked()
		}
	}
}

// becomeLocked notes the state, and tells those who want to know.
func (m *Members) becomeLocked(now time.Time, state State, untried bool) {
	state.Since = m.state.Since
	if state.Reach != m.state.Reach {
		state.Since = now
	}
	hopeless := state.Reach == Unreachable && !untried
	switch {
	case !hopeless:
		m.why = nil
	case m.why == nil:
		m.why = m.failuresLocked()
		m.wakeLocked()
	}
	state.Err = m.why
	if state.Reach != Unknown && !state.same(m.state) {
		signal(m.told)
	}
	m.state = state
}

func (m *Members) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// failuresLocked is ErrUnreachable with what every node failed with.
func (m *Members) failuresLocked() error {
	var errs []error
	for _, l := range m.links {
		errs = append(errs, fmt.Errorf("%s: %w", l.address, l.err))
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, errors.Join(errs...))
}

// leaderLocked is the leader that the node with the newest term tells of.
func (m *Members) leaderLocked() (leader Endpoint) {
	term := uint64(0)
	for _, l := range m.links {
		s := l.status
		if !l.usableLocked() || s.GetLeader() == "" || s.GetTerm() < term {
			continue
		}
		term, leader = s.GetTerm(), Endpoint{ID: s.GetLeader()}
		for _, n := range s.GetNodes() {
			if n.GetId() == s.GetLeader() {
				leader.Address = n.GetGrpc()
			}
		}
	}
	return leader
}

// adoptLocked learns the members that a node told of, and forgets those of which
// no node that answers tells any more.
func (m *Members) adoptLocked(status *quorleasev1.ClusterStatusResponse) {
	for _, n := range status.GetNodes() {
		if addressProblem(n.GetGrpc()) != "" {
			continue
		}
		if l := m.addLocked(n.GetGrpc(), false); l != nil {
			l.id = n.GetId()
		}
	}
	told := m.toldLocked()
	if len(told) == 0 {
		return
	}
	kept := m.links[:0:0]
	for _, l := range m.links {
		if l.seed || told[l.address] {
			kept = append(kept, l)
		} else {
			l.cancel()
		}
	}
	m.links = kept
}

// toldLocked are the addresses that any node that answers tells of.
func (m *Members) toldLocked() map[string]bool {
	told := map[string]bool{}
	for _, l := range m.links {
		if !l.usableLocked() {
			continue
		}
		for _, n := range l.status.GetNodes() {
			told[n.GetGrpc()] = true
		}
	}
	return told
}
