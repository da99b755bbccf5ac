package members

import (
	"context"
	"slices"
	"time"

	"github.com/quorlease/quorlease/client/session"
)

// warmFor is how long it takes until a node that was just reached has as many turns as the
// others: it may have just started, and holds nothing yet of what it is asked for.
const warmFor = 2 * time.Second

// livelyFor is how long a node that answers many may take for the next answer.
const livelyFor = 50 * time.Millisecond

// Any is Session for what every node can answer as well as the leader. It takes the node
// whose turn it is among those that are in no doubt, and none that skip names as long as
// there is another one. One that was just reached is passed over for whoever Session
// gives, unless that is one to be skipped or in doubt.
func (m *Members) Any(
	ctx context.Context, turn uint64, skip map[string]bool,
) (*session.Session, Endpoint, error) {
	if level := m.level.Load(); level != nil {
		n := uint64(len(*level))
		best := m.best.Load()
		var cold *choice
		spared := false
		for i := range n {
			c := (*level)[(turn+i)%n]
			if skip[c.endpoint.Address] || !alive(c.session) {
				continue
			}
			if c.link.isWarm(turn) {
				return c.session, c.endpoint, nil
			}
			spared = spared || best != nil && best.link == c.link
			if cold == nil {
				cold = c
			}
		}
		if cold != nil && !spared {
			return cold.session, cold.endpoint, nil
		}
	}
	return m.Session(ctx)
}

// Answered notes that a node which Any chose has answered. It says whether the node is
// cold: it was reached so lately that it may not have what it will have soon.
func (m *Members) Answered(e Endpoint) (cold bool) {
	l := m.chosen(e)
	if l == nil {
		return false
	}
	l.answeredAt.Store(time.Now().UnixNano())
	return !l.warm.Load()
}

// Slow tells that a node that Any chose let somebody wait for too long. Unless it has
// answered others a moment ago it has no turn for a second, and all nodes are asked for
// their status at once: it may hang. Whatever only the leader can answer is asked of it all
// the same, until it fails that too.
func (m *Members) Slow(e Endpoint) {
	l := m.chosen(e)
	if l == nil || time.Since(time.Unix(0, l.answeredAt.Load())) < livelyFor {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	l.slow = now.Add(doubtFor)
	m.troubleLocked(now)
}

// chosen is a node over which Any takes turns, nil where it is none.
func (m *Members) chosen(e Endpoint) *link {
	if level := m.level.Load(); level != nil {
		for _, c := range *level {
			if c.endpoint.Address == e.Address {
				return c.link
			}
		}
	}
	return nil
}

// isWarm says whether a node has this turn, were it its own: the longer it has been
// reached the more often, by the square of that, since what the process before it held may
// be out for some time yet.
func (l *link) isWarm(turn uint64) bool {
	const parts = 1 << 8
	if l.warm.Load() {
		return true
	}
	age := time.Since(time.Unix(0, l.reachedAt.Load()))
	if age >= warmFor {
		l.warm.Store(true)
	}
	part := uint64(max(0, age) * parts / warmFor)
	return part*part > turn>>16%(parts*parts)
}

// Others says whether Any would find a node that skip does not name.
func (m *Members) Others(skip map[string]bool) bool {
	level := m.level.Load()
	return level != nil && slices.ContainsFunc(*level, func(c *choice) bool {
		return !skip[c.endpoint.Address] && alive(c.session)
	})
}

// Spare says whether Any would find another node than this one and those that skip names,
// one that is in no doubt: who is kept waiting by one may well be answered by another.
func (m *Members) Spare(skip map[string]bool, this Endpoint) bool {
	level := m.level.Load()
	return level != nil && m.sound.Load() && slices.ContainsFunc(*level, func(c *choice) bool {
		return c.endpoint.Address != this.Address && !skip[c.endpoint.Address] && alive(c.session)
	})
}

// levelLocked notes over whom Any takes turns: over all that are usable and in no doubt, or
// else over all that are usable. A node that knows no leader is left out while the leader
// is there, from which it is cut off; in an election it holds as much as any other.
func (m *Members) levelLocked(now time.Time, usable []*link, leader Endpoint) {
	sound := slices.DeleteFunc(slices.Clone(usable), func(l *link) bool {
		return l.doubt.After(now) || l.slow.After(now)
	})
	if slices.ContainsFunc(sound, func(l *link) bool { return l.address == leader.Address && !l.leaderlessLocked() }) {
		sound = slices.DeleteFunc(sound, (*link).leaderlessLocked)
	}
	m.sound.Store(len(sound) > 0)
	links := sound
	if len(links) == 0 {
		links = usable
	}
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
