package quorum

import "slices"

// Server is one member of a configuration.
type Server struct {
	ID    int
	Voter bool
}

// Configuration says who is a member. It never changes: a change is another one, in an
// entry of the log, and holds for whoever has that entry, committed or not.
type Configuration struct{ Servers []Server }

// Find is the server with an id; ok is false where there is none.
func (c *Configuration) Find(id int) (s Server, ok bool) {
	i := slices.IndexFunc(c.Servers, func(s Server) bool { return s.ID == id })
	if i < 0 {
		return Server{}, false
	}
	return c.Servers[i], true
}

// Votes says whether an id is that of a voter.
func (c *Configuration) Votes(id int) bool {
	s, _ := c.Find(id)
	return s.Voter
}

// Without is the configuration without an id.
func (c *Configuration) Without(id int) *Configuration {
	return &Configuration{slices.DeleteFunc(slices.Clone(c.Servers), func(s Server) bool { return s.ID == id })}
}

// With is the configuration with a server as it is given, whether or not it was there.
func (c *Configuration) With(s Server) *Configuration {
	next := slices.Clone(c.Servers)
	if i := slices.IndexFunc(next, func(one Server) bool { return one.ID == s.ID }); i >= 0 {
		next[i] = s
	} else {
		next = append(next, s)
	}
	return &Configuration{next}
}

// count is how many voters there are, and of how many yes is true.
func (c *Configuration) count(yes func(id int) bool) (voters, those int) {
	for _, s := range c.Servers {
		if s.Voter {
			voters++
			if yes(s.ID) {
				those++
			}
		}
	}
	return voters, those
}

// Latest is the newest configuration that the member has, and the index of its entry: 0
// is that with which the group began.
func (m *Member) Latest() (*Configuration, uint64) { return m.latest.Configuration, m.latest.index }

// Certain is the newest that it has applied.
func (m *Member) Certain() (*Configuration, uint64) { return m.certain.Configuration, m.certain.index }

// Change appends another configuration, if the member leads, its newest one is that of
// index and has committed, and something of its own term has. As with any entry, that it
// is appended does not mean that it will commit.
func (m *Member) Change(after uint64, next *Configuration) (index uint64, ok bool) {
	if m.role != Leader || m.latest.index > m.commit || m.latest.index != after {
		return 0, false
	}
	index = m.last() + 1
	m.append(&Entry{Term: m.term, Configuration: next})
	m.broadcast()
	m.advance()
	return index, true
}

// Last is the index of the last entry of its log, committed or not.
func (m *Member) Last() uint64 { return m.last() }

// Commit is the index up to which it knows that the log has committed.
func (m *Member) Commit() uint64 { return m.commit }

// holds says whether its log has an entry of a term, or has cut it off.
func (m *Member) holds(index, term uint64) bool {
	return index <= m.first || index <= m.last() && m.termAt(index) == term
}

// configured is a configuration and where it is in the log.
type configured struct {
	*Configuration
	index uint64
}

// adopt takes a configuration that the member appends. Whoever is new to a leader is
// asked from the end of its log on.
func (m *Member) adopt(index uint64, next *Configuration) {
	for _, s := range next.Servers {
		if _, known := m.latest.Find(s.ID); !known && m.role != Follower {
			m.next[s.ID], m.match[s.ID], m.heard[s.ID] = m.last()+1, 0, m.host.Boot()
		}
	}
	m.latest = configured{next, index}
}

// reconsider finds the newest configuration when the log became shorter.
func (m *Member) reconsider() {
	m.latest = m.snapshot.configured
	for i := len(m.log) - 1; i >= 0; i-- {
		if next := m.log[i].Configuration; next != nil {
			if index := m.first + uint64(i) + 1; index > m.latest.index {
				m.latest = configured{next, index}
			}
			return
		}
	}
}

// witnessed compares what a member commits with what everybody has.
func (g *Group) witnessed(m *Member) {
	for i := max(g.index, m.first) + 1; i <= m.commit; i++ {
		if next := m.at(i).Configuration; next != nil && g.Changed != nil {
			g.Changed(i, next)
		}
	}
	if m.commit > g.index {
		g.index, g.term = m.commit, m.termAt(m.commit)
	}
}

// elected checks that nobody else was in this term, and that the log of whoever is has
// all that was ever committed.
func (g *Group) elected(m *Member) {
	if g.winners == nil {
		g.winners = make(map[uint64]int)
	}
	if other, known := g.winners[m.term]; known && other != m.id {
		m.broken("leads in term %d, in which member %d led", m.term, other)
	}
	g.winners[m.term] = m.id
	if !m.holds(g.index, g.term) {
		m.broken("leads in term %d and lacks entry %d, which was committed", m.term, g.index)
	}
}
