package quorum_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/stage"
)

// list is a machine that remembers every entry.
type list struct {
	entries []uint64
	role    quorum.Role
}

func (l *list) Apply(_ uint64, e *quorum.Entry) {
	l.entries = append(l.entries, binary.BigEndian.Uint64(e.Payload))
}

func (l *list) Snapshot() any { return slices.Clone(l.entries) }

func (l *list) Restore(snapshot any) {
	l.entries = nil
	if snapshot != nil {
		l.entries = slices.Clone(snapshot.([]uint64))
	}
}

func (l *list) Become(role quorum.Role, _ uint64) { l.role = role }

type cluster struct {
	*stage.Stage
	network *stage.Network
	group   *quorum.Group
	hosts   []*stage.Host
	lists   []*list
}

func newCluster(t *testing.T, seed uint64, size int) *cluster {
	t.Helper()
	s := stage.New(seed)
	c := &cluster{Stage: s, network: s.NewNetwork()}
	c.group = &quorum.Group{
		Stage: s, Network: c.network, SnapshotEvery: 10, Broken: func(what string) { t.Error(what) },
	}
	for range size {
		host, l := s.NewHost("n", stage.Clocks{PPM: s.Amount(-200, 200)}), &list{}
		c.hosts, c.lists = append(c.hosts, host), append(c.lists, l)
		c.group.Join(host, l)
	}
	for _, m := range c.group.Members {
		m.Start()
	}
	return c
}

func (c *cluster) run(d time.Duration) { c.Run(c.Real()+d, func() bool { return false }) }

func (c *cluster) leader() *quorum.Member {
	for i, m := range c.group.Members {
		if c.hosts[i].Runs() && m.Role() == quorum.Leader {
			return m
		}
	}
	return nil
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// TestAgreement: through crashes, cuts and loss all members have the same list,
// with everything that some member had applied.
func TestAgreement(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		c := newCluster(t, seed, 3+2*int(seed%2))
		c.network.Lose, c.network.Repeat, c.network.Slow, c.network.Late = 10, 10, 10, time.Second
		var longest []uint64
		next := uint64(0)
		for range 60 {
			i := c.Rand.IntN(len(c.hosts))
			switch c.Rand.IntN(4) {
			case 0:
				c.network.Cut(c.hosts[i:i+1], c.hosts, c.Between(0, 3*time.Second))
			case 1:
				if !c.hosts[i].Dead() {
					c.hosts[i].Kill()
				}
			case 2:
				if c.hosts[i].Dead() {
					c.hosts[i].Start()
					c.group.Members[i].Start()
				}
			}
			for range 5 {
				if m := c.leader(); m != nil {
					next++
					m.Propose(number(next), nil)
				}
				c.run(c.Between(0, 200*time.Millisecond))
			}
			for _, l := range c.lists {
				longest = checkPrefix(t, longest, l.entries)
			}
		}
		c.network.Heal()
		for i, h := range c.hosts {
			if h.Dead() {
				h.Start()
				c.group.Members[i].Start()
			}
		}
		c.run(8 * time.Second)
		checkAll(t, c, longest)
	}
}

// checkPrefix fails unless one is the beginning of the other, and returns the
// longer.
func checkPrefix(t *testing.T, a, b []uint64) []uint64 {
	t.Helper()
	if len(a) > len(b) {
		a, b = b, a
	}
	if !slices.Equal(a, b[:len(a)]) {
		t.Fatalf("two lists:\n%v\n%v", a, b)
	}
	return slices.Clone(b)
}

func checkAll(t *testing.T, c *cluster, longest []uint64) {
	t.Helper()
	if c.leader() == nil || len(longest) == 0 {
		t.Errorf("leader %v, %d entries", c.leader(), len(longest))
	}
	for i, l := range c.lists {
		if len(l.entries) < len(longest) || !slices.Equal(l.entries[:len(longest)], longest) {
			t.Errorf("member %d has %d entries of %d", i, len(l.entries), len(longest))
		}
	}
}

// TestStuck: an entry that a deposed leader could not commit commits in a later
// term, in its place (T4).
func TestStuck(t *testing.T) {
	t.Parallel()
	found := false
	for seed := uint64(0); seed < 50 && !found; seed++ {
		c := newCluster(t, seed, 3)
		c.run(5 * time.Second)
		leader := c.leader()
		if leader == nil {
			t.Fatal("no leader after 5 s")
		}
		entry, _ := leader.Propose(number(1), nil)
		i := slices.Index(c.group.Members, leader)
		// The entry is under way, its answers are lost.
		c.run(c.Between(200*time.Microsecond, time.Millisecond))
		c.network.Cut(c.hosts[i:i+1], c.hosts, 20*time.Second)
		c.run(10 * time.Second)
		other := c.leader()
		for k, m := range c.group.Members {
			if k != i && m.Role() == quorum.Leader {
				other = m
			}
		}
		k := slices.Index(c.group.Members, other)
		found = other != leader && slices.Contains(c.lists[k].entries, 1) && other.Term() > entry.Term
	}
	if !found {
		t.Error("no entry of an earlier term was committed")
	}
}
