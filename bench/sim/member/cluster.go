// Package member has members of a simulated world come and go: an operator with wishes, the
// real decisions of whichever node leads (cluster/membership), machines that lose their
// disks, and a judge of it all.
//
// What is asked, looked at and answered is lost, late and repeated like anything else.
package member

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/cluster/membership"
)

const (
	// Founders are who form the cluster, Spares may come.
	Founders = 3
	Spares   = 4
	// Least is how many members there are at least, most at most.
	Least = Founders
	most  = 5
)

// Config is what a cluster needs of its world.
type Config struct {
	Stage   *stage.Stage
	Network *stage.Network
	Judge   *judge.Judge
	Stats   *tally.Stats
	Trap    trap.Kind
	// Active: members may be changed.
	Active func() bool
	// Begun has a process of a place begin. Joined is told that one is a member now, Ended
	// that one never comes back.
	Begun, Joined, Ended func(id int)
	// Known are the members that the replica of a place knows, Propose proposes there.
	Known   func(id int) []*logv1.NodeRecord
	Propose func(id int, op *logv1.Operation)
	// Leads says that a place serves as the leader.
	Leads func(id int) bool
}

// place is a data directory, with the machine that it is on: what has one Raft id. One that
// lost its disk comes back as another.
type place struct {
	id     int
	host   *stage.Host
	member *quorum.Member
	// name is what the operator calls it, and where it can be reached.
	name string
	// there: it was started. gone: it never comes back.
	there, gone bool
	// busy: it decides about a change, or waits for one.
	busy bool
	// seen is what it knows of the others, as of looked in real time.
	seen   map[int]*seen
	looked time.Duration
	// was: by what it has applied it was a member. refused is how often in a row most
	// voters disowned it.
	was     bool
	refused int
	looks   int
}

// seen is what a place knows of another one: as of when it looked last.
type seen struct {
	answers, good bool
	lag           uint64
	since         time.Duration
}

// Cluster is all places.
type Cluster struct {
	Config
	places   []*place
	operator *stage.Host
	checks   checks
}

// New is one without places.
func New(c Config) *Cluster {
	cluster := &Cluster{Config: c, operator: c.Stage.NewHost("operator", stage.Clocks{})}
	cluster.checks = newChecks(c.Judge, c.Stage)
	return cluster
}

// Add makes the next place, whose number is that of its member. The first ones found the
// cluster.
func (c *Cluster) Add(host *stage.Host, m *quorum.Member) {
	p := &place{id: len(c.places), host: host, member: m, name: host.Name}
	p.there = p.id < Founders
	c.places = append(c.places, p)
	c.checks.places = c.places
}

// Begin lets the operator act.
func (c *Cluster) Begin() {
	c.Stage.At(nil, c.Stage.Between(time.Second, 4*time.Second), c.act)
	c.Stage.At(nil, c.Stage.Between(8*time.Second, 20*time.Second), c.loseDisk)
	c.Stage.At(nil, lookEvery, c.checks.watch)
}

// Started tells of a process that begins.
func (c *Cluster) Started(id int) {
	p := c.places[id]
	p.busy, p.was, p.refused, p.seen = false, false, 0, make(map[int]*seen)
	c.Stage.At(p.host, c.Stage.Between(0, lookEvery), func() { c.look(p) })
}

// Changed takes a configuration that has committed.
func (c *Cluster) Changed(index uint64, next *quorum.Configuration) {
	if index > 1 {
		c.Stats.Changes++
	}
	c.checks.committed(index, next)
	for _, s := range next.Servers {
		c.Joined(s.ID)
	}
}

// Serving is how many members there are by what a place has applied, 0 while it is none.
func (c *Cluster) Serving(id int) int {
	certain, _ := c.places[id].member.Certain()
	if _, member := certain.Find(id); !member {
		return 0
	}
	latest, _ := c.places[id].member.Latest()
	return max(len(certain.Servers), len(latest.Servers))
}

// Gone says whether a place never comes back.
func (c *Cluster) Gone(id int) bool { return c.places[id].gone }

// Learns says whether a place is a member without a vote.
func (c *Cluster) Learns(id int) bool {
	s, known := c.checks.now.Find(id)
	return known && !s.Voter
}

// Belongs says whether a place is a member in the end.
func (c *Cluster) Belongs(id int) bool {
	_, known := c.checks.now.Find(id)
	return known
}

// Settled checks what must be so in the end: who was removed knows of it, and the records
// are those of the members.
func (c *Cluster) Settled() {
	for _, p := range c.places {
		if p.there && !p.gone && c.checks.removed[p.id] && c.checks.knew[p.id] && c.disowned(p) {
			c.Judge.Complain("members", "%s was removed and still runs", p.host.Name)
		}
		if !c.Belongs(p.id) || p.gone {
			continue
		}
		known := c.Known(p.id)
		for _, record := range known {
			if !c.belongs(record.GetRaftId()) {
				c.Judge.Complain("members", "%s knows %s, which is no member", p.host.Name, record.GetRaftId())
			}
		}
		if len(known) != len(c.checks.now.Servers) {
			c.Judge.Complain("members", "%s knows %d members, there are %d", p.host.Name, len(known),
				len(c.checks.now.Servers))
		}
	}
}

func (c *Cluster) belongs(raftID string) bool {
	for _, p := range c.places {
		if p.host.Name == raftID {
			return c.Belongs(p.id)
		}
	}
	return false
}

// at is the place that answers to a name.
func (c *Cluster) at(name string) *place {
	for _, p := range c.places {
		if p.name == name && p.there && !p.gone {
			return p
		}
	}
	return nil
}

// begin starts the next place that was never there, under a name, if there is one.
func (c *Cluster) begin(name string) {
	for _, p := range c.places {
		if !p.there {
			p.there = true
			if name != "" {
				p.name = name
			}
			c.Stage.Trace("%s starts, called %s", p.host.Name, p.name)
			p.host.Start()
			c.Begun(p.id)
			return
		}
	}
}

// end has a place never come back.
func (c *Cluster) end(p *place) {
	p.gone = true
	if !p.host.Dead() {
		p.host.Kill()
	}
	c.Ended(p.id)
}

// String names a wish.
func text(r membership.Request) string {
	return fmt.Sprintf("%s %s", [...]string{"", "add", "remove", "promote", "demote", "transfer"}[r.Verb], r.Name)
}
