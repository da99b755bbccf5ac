package quorum

import "slices"

// batch is one message with entries, or with none: a heartbeat.
type batch struct {
	from           *Member
	term           uint64
	prev, prevTerm uint64
	entries        []*Entry
	commit         uint64
}

func (m *Member) broadcast() {
	for _, s := range m.latest.Servers {
		if peer := m.group.Members[s.ID]; peer != m {
			m.replicate(peer)
		}
	}
}

func (m *Member) replicate(peer *Member) {
	next := m.next[peer.id]
	if next <= m.first {
		m.install(peer)
		return
	}
	end := min(m.last(), next+atOnce-1)
	// A log only grows, or becomes another slice: what lies there stays.
	b := &batch{
		from: m, term: m.term, prev: next - 1, prevTerm: m.termAt(next - 1), commit: m.commit,
		entries: m.log[next-m.first-1 : end-m.first : end-m.first],
	}
	m.send(peer, func() { peer.receive(b) })
}

// receive takes entries from whoever leads in b's term.
func (m *Member) receive(b *batch) {
	if b.term < m.term {
		m.answer(b.from, b.term, 0, false)
		return
	}
	m.follow(b.term, b.from.id)
	if b.prev > m.last() || b.prev >= m.first && m.termAt(b.prev) != b.prevTerm {
		m.answer(b.from, b.term, min(m.last(), max(b.prev, 1)-1), false)
		return
	}
	for i, e := range b.entries {
		index := b.prev + 1 + uint64(i)
		switch {
		case index <= m.first:
			// A snapshot has it.
		case index > m.last():
			m.append(e)
		case m.at(index).Term != e.Term:
			if index <= m.commit {
				m.broken("entry %d was committed in term %d and is replaced in term %d", index, m.at(index).Term, e.Term)
				return
			}
			m.log = slices.Clone(m.log[:index-m.first-1])
			m.reconsider()
			m.append(e)
		}
	}
	match := b.prev + uint64(len(b.entries))
	m.commit = max(m.commit, min(b.commit, match))
	m.apply()
	m.answer(b.from, b.term, match, true)
}

func (m *Member) answer(to *Member, asked, match uint64, ok bool) {
	term := m.term
	m.send(to, func() { to.answered(m, [2]uint64{asked, term}, match, ok) })
}

// answered takes the word of a member: up to where its log is the leader's, or
// that it is not.
func (m *Member) answered(by *Member, terms [2]uint64, match uint64, ok bool) {
	asked, term := terms[0], terms[1]
	if term > m.term {
		m.follow(term, nobody)
		return
	}
	if _, known := m.latest.Find(by.id); asked != m.term || m.role == Follower || !known {
		return
	}
	m.heard[by.id] = m.host.Boot()
	if !ok {
		m.next[by.id] = max(m.match[by.id]+1, min(m.next[by.id], match+1))
		m.replicate(by)
		return
	}
	m.match[by.id] = max(m.match[by.id], match)
	m.next[by.id] = max(m.next[by.id], m.match[by.id]+1)
	m.advance()
	if m.role != Follower && m.next[by.id] <= m.last() && match >= m.next[by.id]-1 {
		m.replicate(by)
	}
}

// advance commits what a majority of the voters has, if it is of this term. A leader that
// has committed that it votes no more leads no more.
func (m *Member) advance() {
	m.match[m.id] = m.last()
	m.sorted = m.sorted[:0]
	for _, s := range m.latest.Servers {
		if s.Voter {
			m.sorted = append(m.sorted, m.match[s.ID])
		}
	}
	slices.Sort(m.sorted)
	agreed := m.sorted[(len(m.sorted)-1)/2]
	if agreed <= m.commit || agreed <= m.first || m.termAt(agreed) != m.term {
		return
	}
	m.commit = agreed
	m.group.witnessed(m)
	m.apply()
	if m.role != Follower && !m.certain.Votes(m.id) {
		m.follow(m.term, nobody)
	}
}

func (m *Member) apply() {
	for m.applied < m.commit {
		m.applied++
		index, e := m.applied, m.at(m.applied)
		if e.Configuration != nil {
			m.certain = configured{e.Configuration, index}
		}
		if e.Payload != nil {
			m.machine.Apply(index, e)
		}
		if m.role == Elected && index == m.barrier {
			m.role = Leader
			m.machine.Become(Leader, m.term)
		}
	}
	if m.applied-m.snapshot.index >= m.group.SnapshotEvery {
		m.compact()
	}
}

// compact writes a snapshot and drops the log behind it.
func (m *Member) compact() {
	m.snapshot = saved{index: m.applied, term: m.termAt(m.applied), state: m.machine.Snapshot(), configured: m.certain}
	if m.applied <= m.first+trailing {
		return
	}
	first := m.applied - trailing
	term := m.termAt(first)
	m.log = slices.Clone(m.log[first-m.first:])
	m.first, m.firstTerm = first, term
}

func (m *Member) install(peer *Member) {
	snapshot, term := m.snapshot, m.term
	m.send(peer, func() { peer.installed(m, term, snapshot) })
}

func (m *Member) installed(from *Member, term uint64, s saved) {
	if term < m.term {
		m.answer(from, term, 0, false)
		return
	}
	m.follow(term, from.id)
	if s.index > m.commit {
		if s.index <= m.last() && m.termAt(s.index) == s.term {
			m.log = slices.Clone(m.log[s.index-m.first:])
		} else {
			m.log = nil
		}
		m.first, m.firstTerm, m.snapshot = s.index, s.term, s
		m.commit, m.applied, m.certain = s.index, s.index, s.configured
		m.reconsider()
		m.group.Installs++
		m.machine.Restore(s.state)
	}
	m.answer(from, term, s.index, true)
}
