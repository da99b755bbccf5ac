package member

import (
	"time"

	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/cluster/membership"
)

// act is one wish of the operator, and those after it.
func (c *Cluster) act() {
	c.Stage.At(nil, c.Stage.Between(400*time.Millisecond, 2*time.Second), c.act)
	if !c.Active() {
		return
	}
	if r := c.wish(); r.Verb != 0 {
		c.ask(r, 2)
	}
	if c.Stage.Chance(3) {
		// Somebody else has one too.
		c.Stage.At(nil, c.Stage.Between(time.Millisecond, 50*time.Millisecond), func() {
			if r := c.wish(); r.Verb != 0 {
				c.ask(r, 1)
			}
		})
	}
}

// wish is something that an operator may want: seldom what is wise.
func (c *Cluster) wish() membership.Request {
	now := c.checks.now
	voters := func(s quorum.Server) bool { return s.Voter }
	learners := func(s quorum.Server) bool { return !s.Voter }
	all := func(quorum.Server) bool { return true }
	switch c.Stage.Rand.IntN(12) {
	case 0, 1, 2, 3:
		return c.newcomer()
	case 4, 5, 6:
		return c.about(membership.Promote, learners)
	case 7:
		return c.about(membership.Demote, voters)
	case 8, 9:
		if len(now.Servers) > Least {
			return c.about(membership.Remove, all)
		}
	case 10:
		return c.about(membership.Transfer, all)
	default:
		return membership.Request{Verb: membership.Transfer}
	}
	return membership.Request{}
}

// about is a wish about one of the members that are of a kind.
func (c *Cluster) about(v membership.Verb, of func(quorum.Server) bool) membership.Request {
	var names []string
	for _, s := range c.checks.now.Servers {
		if of(s) {
			names = append(names, c.places[s.ID].name)
		}
	}
	if len(names) == 0 {
		return membership.Request{}
	}
	return membership.Request{Verb: v, Name: names[c.Stage.Rand.IntN(len(names))]}
}

// newcomer is the wish to add somebody who runs and is no member, whether or not it was
// one. Where there is none, one is started.
func (c *Cluster) newcomer() membership.Request {
	var names []string
	for _, p := range c.places {
		if p.there && !p.gone && !c.Belongs(p.id) {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		if len(c.checks.now.Servers) < most {
			c.begin("")
		}
		return membership.Request{}
	}
	name := names[c.Stage.Rand.IntN(len(names))]
	return membership.Request{Verb: membership.Add, Name: name, Address: name}
}

// ask asks some node, and once more where the leadership moved first.
func (c *Cluster) ask(r membership.Request, tries int) {
	var all []*place
	for _, p := range c.places {
		if p.there && !p.gone {
			all = append(all, p)
		}
	}
	to := all[c.Stage.Rand.IntN(len(all))]
	c.Network.Send(c.operator, to.host, func() {
		c.route(to, r, 0, func(moved bool, err error) {
			c.Stage.Trace("%s: moved %t, %v", text(r), moved, err)
			if moved && tries > 1 {
				c.Stage.At(nil, 300*time.Millisecond, func() { c.ask(r, tries-1) })
			}
		})
	})
}

// route brings a wish to the leader.
func (c *Cluster) route(p *place, r membership.Request, hops int, answer func(moved bool, err error)) {
	leader := p.member.LeaderID()
	switch {
	case c.Leads(p.id):
		c.here(p, r, answer)
	case leader >= 0 && leader != p.id && hops < 2:
		to := c.places[leader]
		c.Network.Send(p.host, to.host, func() { c.route(to, r, hops+1, answer) })
	}
}

// loseDisk has a member lose its disk for good: its machine comes back with another data
// directory under the same name. It happens to one at a time, to whom a majority can do
// without.
func (c *Cluster) loseDisk() {
	c.Stage.At(nil, c.Stage.Between(8*time.Second, 20*time.Second), c.loseDisk)
	if !c.Active() || !c.calm() {
		return
	}
	now := c.checks.now
	p := c.places[now.Servers[c.Stage.Rand.IntN(len(now.Servers))].ID]
	c.Stats.Wiped++
	c.Stage.Trace("%s loses its disk", p.host.Name)
	if c.Trap == trap.SameAgain {
		p.host.Kill()
		p.member.Wipe()
		p.host.Start()
		c.Begun(p.id)
		return
	}
	c.checks.lost = c.Stage.Real()
	c.checks.wiped[p.id] = true
	c.end(p)
	c.Stage.At(nil, c.Stage.Between(100*time.Millisecond, 2*time.Second), func() { c.begin(p.name) })
}

// calm says that a voter may be lost: there are three, none was lost before who still is
// one, and no change is under way.
func (c *Cluster) calm() bool {
	voters := 0
	for _, s := range c.checks.now.Servers {
		if c.places[s.ID].gone {
			return false
		}
		if s.Voter {
			voters++
		}
	}
	for _, p := range c.places {
		if _, index := p.member.Latest(); p.there && !p.gone && index > c.checks.index {
			return false
		}
	}
	return voters >= Founders
}
