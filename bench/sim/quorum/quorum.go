// Package quorum is a small Raft in virtual time: elections, replication over a
// bad network, entries that are stuck and commit in a later term, followers
// that lag, snapshots, restarts that lose what was not on disk.
//
// It is a model of the library that the authority is built on, good enough to
// bring about every order of events that the parts above it must survive. It is
// not that library.
package quorum

import (
	"fmt"
	"time"

	"github.com/quorlease/quorlease/bench/sim/stage"
)

// Entry is one entry of the log. It never changes.
type Entry struct {
	Term uint64
	// Payload is nil for a barrier, and where there is a configuration.
	Payload       []byte
	Configuration *Configuration
	// Note is for checkers: no member looks at it.
	Note any
}

// Role is what a member is.
type Role int

// The roles. A member that was elected leads once its barrier has been applied.
const (
	Follower Role = iota
	Elected
	Leader
)

// Machine is what a member applies entries to. Its calls come in the order of
// the log.
type Machine interface {
	// Apply applies a committed entry with a payload.
	Apply(index uint64, entry *Entry)
	// Snapshot is the state, which must not change any more.
	Snapshot() any
	// Restore replaces the state; nil is the empty one, for a new process.
	Restore(snapshot any)
	// Become says what the member is now.
	Become(role Role, term uint64)
}

const (
	beat         = 100 * time.Millisecond
	patienceLow  = 600 * time.Millisecond
	patienceHigh = 1200 * time.Millisecond
	// lonely is how long a leader leads that hears no majority.
	lonely = 800 * time.Millisecond
	// atOnce is how many entries one message carries.
	atOnce = 32
	// trailing is how many entries stay in the log behind a snapshot.
	trailing = 8
)

// Group is all members.
type Group struct {
	Stage   *stage.Stage
	Network *stage.Network
	Members []*Member
	// SnapshotEvery is how many applied entries make a snapshot due.
	SnapshotEvery uint64
	// Broken is told when the log itself went wrong: the model is at fault then.
	Broken func(what string)
	// Elections and Installs count leaders and installed snapshots, Won is when somebody was
	// elected last.
	Elections, Installs int
	Won                 time.Duration
	// Founders are how many members begin as voters, the first of them. 0: all are, for
	// good.
	Founders int
	// Changed is told of each configuration that has committed, once, in their order.
	Changed func(index uint64, c *Configuration)

	// index and term are those of the last entry that ever committed, winners who led in
	// which term.
	index, term uint64
	winners     map[uint64]int
}

// Join adds a member; when all have joined, Start each. One that is no founder waits until
// some leader adds it.
func (g *Group) Join(host *stage.Host, machine Machine) *Member {
	m := &Member{group: g, id: len(g.Members), host: host, machine: machine, vote: nobody}
	m.snapshot.configured.Configuration = &Configuration{}
	m.latest, m.certain = m.snapshot.configured, m.snapshot.configured
	g.Members = append(g.Members, m)
	return m
}

// Wipe loses what was on the disk (a mistake: who comes back with nothing under the same id
// may vote twice, and has forgotten what it said that it has).
func (m *Member) Wipe() {
	*m = Member{group: m.group, id: m.id, host: m.host, machine: m.machine, vote: nobody, wiped: true}
	m.snapshot.configured.Configuration = &Configuration{}
}

// found writes down with whom a founder begins.
func (m *Member) found() {
	all := &Configuration{}
	for id := range m.group.Members {
		if m.group.Founders == 0 || id < m.group.Founders {
			all.Servers = append(all.Servers, Server{ID: id, Voter: true})
		}
	}
	switch {
	case m.group.Founders == 0:
		m.snapshot.configured.Configuration = all
	case m.id < m.group.Founders:
		m.term, m.log = 1, []*Entry{{Term: 1, Configuration: all}}
	}
}

const nobody = -1

// saved is a snapshot on a disk.
type saved struct {
	index, term uint64
	state       any
	configured  configured
}

// Member is one member.
type Member struct {
	group   *Group
	id      int
	host    *stage.Host
	machine Machine

	// On disk: the log holds the entries after first.
	term             uint64
	vote             int
	first, firstTerm uint64
	log              []*Entry
	snapshot         saved
	// wiped: nothing is, though it was.
	wiped bool

	// In memory.
	role            Role
	latest, certain configured
	// stands: it is a candidate in its term. A vote that comes late must not make a
	// leader again of one that gave up.
	stands          bool
	leader          int
	commit, applied uint64
	barrier         uint64
	deadline        time.Duration
	votes           []bool
	next, match     []uint64
	heard           []time.Duration
	// sorted is room for match in order.
	sorted []uint64
}

// Start begins a process with what is on the disk.
func (m *Member) Start() {
	n := len(m.group.Members)
	if m.term == 0 && !m.wiped {
		m.found()
	}
	m.reconsider()
	m.certain = m.snapshot.configured
	m.role, m.leader, m.barrier = Follower, nobody, 0
	m.next, m.match = make([]uint64, n), make([]uint64, n)
	m.votes, m.heard = make([]bool, n), make([]time.Duration, n)
	m.commit, m.applied = m.snapshot.index, m.snapshot.index
	m.machine.Restore(m.snapshot.state)
	m.wait()
	m.group.Stage.At(m.host, m.group.Stage.Between(0, beat), m.tick)
}

// Role is what the member is.
func (m *Member) Role() Role { return m.role }

// Term is the member's term.
func (m *Member) Term() uint64 { return m.term }

// Applied is the index of the last entry that was applied.
func (m *Member) Applied() uint64 { return m.applied }

// LeaderID is the member that leads as far as this one knows, -1 for none.
func (m *Member) LeaderID() int { return m.leader }

// Propose appends an entry, if the member was elected. That it is appended does
// not mean that it will commit; if not, it may still.
func (m *Member) Propose(payload []byte, note any) (*Entry, bool) {
	if m.role == Follower {
		return nil, false
	}
	e := &Entry{Term: m.term, Payload: payload, Note: note}
	m.append(e)
	m.broadcast()
	m.advance()
	return e, true
}

// Campaign starts an election at once.
func (m *Member) Campaign() {
	if m.role == Follower {
		m.deadline = m.host.Boot()
		m.group.Stage.At(m.host, 0, m.elect)
	}
}

func (m *Member) tick() {
	m.group.Stage.At(m.host, beat, m.tick)
	switch {
	case m.role == Follower && m.host.Boot() >= m.deadline:
		m.leader = nobody
		m.elect()
	case m.role != Follower && m.alone():
		m.follow(m.term, nobody)
	case m.role != Follower:
		m.broadcast()
	}
}

func (m *Member) wait() {
	m.deadline = m.host.Boot() + m.group.Stage.Between(patienceLow, patienceHigh)
}

func (m *Member) alone() bool {
	voters, reached := m.latest.count(func(id int) bool { return id == m.id || m.host.Boot()-m.heard[id] < lonely })
	return 2*reached <= voters
}

// follow makes a follower of the member, of leader if that is known.
func (m *Member) follow(term uint64, leader int) {
	if term > m.term {
		m.term, m.vote = term, nobody
	}
	m.leader, m.stands = leader, false
	m.wait()
	if m.role != Follower {
		m.role = Follower
		m.machine.Become(Follower, m.term)
	}
}

func (m *Member) elect() {
	if m.role != Follower || m.host.Boot() < m.deadline || !m.latest.Votes(m.id) {
		return
	}
	m.term++
	m.vote, m.leader, m.stands = m.id, nobody, true
	clear(m.votes)
	m.votes[m.id] = true
	m.wait()
	term, last, lastTerm := m.term, m.last(), m.termAt(m.last())
	for _, s := range m.latest.Servers {
		if peer := m.group.Members[s.ID]; peer != m && s.Voter {
			m.send(peer, func() { peer.asked(m, term, last, lastTerm) })
		}
	}
	m.count()
}

func (m *Member) send(to *Member, deliver func()) { m.group.Network.Send(m.host, to.host, deliver) }

// asked is whether a candidate may have this member's vote. A stranger is not listened to,
// as it may be one that was removed.
func (m *Member) asked(by *Member, term, last, lastTerm uint64) {
	if _, known := m.latest.Find(by.id); !known && len(m.latest.Servers) > 0 {
		return
	}
	if term > m.term {
		deadline := m.deadline
		m.follow(term, nobody)
		if m.group.Founders > 0 {
			// Where a voter is gone for good, whoever can't be elected must not put off for
			// ever whoever can.
			m.deadline = deadline
		}
	}
	current := lastTerm > m.termAt(m.last()) || lastTerm == m.termAt(m.last()) && last >= m.last()
	granted := term == m.term && current && (m.vote == nobody || m.vote == by.id)
	if granted {
		m.vote = by.id
		m.wait()
	}
	answer := m.term
	m.send(by, func() { by.voted(m.id, term, answer, granted) })
}

func (m *Member) voted(by int, asked, term uint64, granted bool) {
	if term > m.term {
		m.follow(term, nobody)
		return
	}
	if asked != m.term || !m.stands || m.vote != m.id || m.leader != nobody || !granted {
		return
	}
	m.votes[by] = true
	m.count()
}

// count makes a leader of who has the votes of a majority.
func (m *Member) count() {
	voters, those := m.latest.count(func(id int) bool { return m.votes[id] })
	if m.stands && 2*those > voters {
		m.win()
	}
}

func (m *Member) win() {
	m.role, m.leader, m.stands = Elected, m.id, false
	m.group.Elections++
	m.group.Won = m.group.Stage.Real()
	m.group.elected(m)
	for i := range m.next {
		m.next[i], m.match[i], m.heard[i] = m.last()+1, 0, m.host.Boot()
	}
	m.machine.Become(Elected, m.term)
	m.barrier = m.last() + 1
	m.append(&Entry{Term: m.term})
	m.broadcast()
}

func (m *Member) last() uint64 { return m.first + uint64(len(m.log)) }

func (m *Member) at(index uint64) *Entry { return m.log[index-m.first-1] }

func (m *Member) termAt(index uint64) uint64 {
	if index == m.first {
		return m.firstTerm
	}
	return m.at(index).Term
}

func (m *Member) append(e *Entry) {
	m.log = append(m.log, e)
	if e.Configuration != nil {
		m.adopt(m.last(), e.Configuration)
	}
}

func (m *Member) broken(format string, values ...any) {
	m.group.Broken(fmt.Sprintf("member %d: ", m.id) + fmt.Sprintf(format, values...))
}
