package members

import (
	"context"
	"slices"

	"github.com/quorlease/quorlease/client/session"
)

// Any is Session for what every node can answer as well as the leader. It takes the node
// whose turn it is among those that are asked equally readily, and none that skip names
// as long as there is another one.
func (m *Members) Any(
	ctx context.Context, turn uint64, skip map[string]bool,
) (*session.Session, Endpoint, error) {
	if level := m.level.Load(); level != nil {
		n := uint64(len(*level))
		for i := range n {
			if c := (*level)[(turn+i)%n]; !skip[c.endpoint.Address] && alive(c.session) {
				return c.session, c.endpoint, nil
			}
		}
	}
	return m.Session(ctx)
}

// Level is how many nodes Any takes turns over.
func (m *Members) Level() int {
	if level := m.level.Load(); level != nil {
		return len(*level)
	}
	return 0
}

// levelLocked notes over whom Any takes turns.
func (m *Members) levelLocked(links []*link) {
	same := func(c *choice, l *link) bool {
		return c.session == l.session && c.link == l && c.endpoint == (Endpoint{l.id, l.address})
	}
	if old := m.level.Load(); old != nil && slices.EqualFunc(*old, links, same) {
		return
	}
	level := make([]*choice, len(links))
	for i, l := range links {
		level[i] = &choice{l.session, Endpoint{l.id, l.address}, l}
	}
	m.level.Store(&level)
}
