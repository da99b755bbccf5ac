package member

import (
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/cluster/membership"
	"github.com/quorlease/quorlease/cluster/outcome"
)

const (
	// lookEvery is how often a node looks at the others.
	lookEvery = 250 * time.Millisecond
	// candidateMax is how long a node that is to be added has to say who it is, and waitMost
	// how long at most somebody waits for a change that may still commit later.
	candidateMax = time.Second
	waitMost     = 2 * time.Second
	// refusalsMax and refusalLooks are cluster/roster's: when a node believes that it was
	// removed, and how many looks make a round.
	refusalsMax  = 3
	refusalLooks = 4
)

// look is what a node finds out about the others, and about itself.
func (c *Cluster) look(p *place) {
	c.Stage.At(p.host, lookEvery, func() { c.look(p) })
	p.looked = c.Stage.Real()
	latest, _ := p.member.Latest()
	for _, s := range latest.Servers {
		other, one := c.places[s.ID], p.seen[s.ID]
		if one == nil {
			one = &seen{}
			p.seen[s.ID] = one
		}
		one.lag = p.member.Last() - min(p.member.Last(), other.member.Applied())
		one.answers = other.host.Runs() && !c.Network.Separated(p.host, other.host)
		good := one.answers && one.lag < membership.LagMost
		if good && !one.good {
			one.since = p.host.Boot()
		}
		one.good = good
	}
	if c.wasRemoved(p) {
		c.Stage.Trace("%s was removed", p.host.Name)
		c.end(p)
		return
	}
	if p.looks++; p.looks%refusalLooks == 0 && c.Leads(p.id) {
		c.announce(p)
	}
}

// wasRemoved is what cluster/roster's keeper makes of what a node has applied, and of the
// others' word while it hears of no leader (R33).
func (c *Cluster) wasRemoved(p *place) bool {
	certain, _ := p.member.Certain()
	if _, member := certain.Find(p.id); member {
		p.was = true
	} else if p.was && len(certain.Servers) > 0 {
		return true
	}
	if p.looks%refusalLooks > 0 {
		return false
	}
	if p.member.LeaderID() >= 0 || !c.disowned(p) {
		p.refused = 0
	} else {
		p.refused++
	}
	return p.refused >= refusalsMax
}

// disowned says whether most of the other voters that a place knows of take it for a
// stranger. One that can't be reached says nothing.
func (c *Cluster) disowned(p *place) bool {
	others, unknown := 0, 0
	latest, _ := p.member.Latest()
	for _, s := range latest.Servers {
		if !s.Voter || s.ID == p.id {
			continue
		}
		others++
		theirs, _ := c.places[s.ID].member.Latest()
		if _, known := theirs.Find(p.id); p.seen[s.ID] != nil && p.seen[s.ID].answers && !known {
			unknown++
		}
	}
	return unknown > others/2
}

// announce brings the records in step with the members.
func (c *Cluster) announce(p *place) {
	certain, _ := p.member.Certain()
	var known []string
	for _, record := range c.Known(p.id) {
		known = append(known, record.GetRaftId())
		if !slices.ContainsFunc(certain.Servers, func(s quorum.Server) bool {
			return c.places[s.ID].host.Name == record.GetRaftId()
		}) {
			c.Propose(p.id, &logv1.Operation{Kind: &logv1.Operation_SetNode{SetNode: &logv1.SetNode{
				Node: &logv1.NodeRecord{RaftId: record.GetRaftId()}, Remove: true,
			}}})
		}
	}
	for _, s := range certain.Servers {
		if one := c.places[s.ID]; !slices.Contains(known, one.host.Name) {
			c.Propose(p.id, &logv1.Operation{Kind: &logv1.Operation_SetNode{SetNode: &logv1.SetNode{
				Node: &logv1.NodeRecord{RaftId: one.host.Name, Name: one.name},
			}}})
		}
	}
}

// here is one step of a change, at the leader: one at a time.
func (c *Cluster) here(p *place, r membership.Request, answer func(bool, error)) {
	if p.busy {
		answer(false, membership.ErrBusy)
		return
	}
	p.busy = true
	done := func(moved bool, err error) {
		p.busy = false
		c.Network.Send(p.host, c.operator, func() { answer(moved, err) })
	}
	if r.Verb != membership.Add {
		c.decide(p, r, done)
		return
	}
	waits := true
	c.Stage.At(p.host, candidateMax, func() {
		if waits {
			waits = false
			done(false, membership.ErrNotReady)
		}
	})
	found := c.at(r.Address)
	if found == nil {
		return
	}
	c.Network.Send(p.host, found.host, func() {
		certain, _ := found.member.Certain()
		_, was := certain.Find(found.id)
		r.Found = membership.Candidate{RaftID: found.host.Name, Name: found.name, Address: found.name, WasMember: was}
		c.Network.Send(found.host, p.host, func() {
			if waits {
				waits = false
				c.decide(p, r, done)
			}
		})
	})
}

// view is the cluster as cluster/roster shows it to the decision, and the index of the
// configuration that it is about.
func (c *Cluster) view(p *place) (membership.View, uint64) {
	latest, _ := p.member.Latest()
	certain, index := p.member.Certain()
	view := membership.View{Leader: p.host.Name, Pending: index == 0 || !slices.Equal(latest.Servers, certain.Servers)}
	for _, s := range latest.Servers {
		other := c.places[s.ID]
		one := membership.Member{RaftID: other.host.Name, Name: other.name, Address: other.name, Voter: s.Voter}
		if known := p.seen[s.ID]; known != nil {
			one.Answers, one.Lag = known.answers, known.lag
			if known.good {
				one.Steady = p.host.Boot() - known.since
			}
		}
		view.Members = append(view.Members, one)
	}
	return view, index
}

// decide has the real decision made, and carries it out.
func (c *Cluster) decide(p *place, r membership.Request, done func(moved bool, err error)) {
	if !c.Leads(p.id) {
		done(false, outcome.ErrNotLeader)
		return
	}
	view, index := c.view(p)
	step, err := membership.Decide(view, r)
	if err != nil {
		done(false, err)
		return
	}
	c.Stage.Trace("%s: %s %s", text(r), step.Action, step.RaftID)
	about := p
	for _, one := range c.places {
		if one.host.Name == step.RaftID {
			about = one
		}
	}
	latest, _ := p.member.Latest()
	next := latest
	switch step.Action {
	case membership.Nothing, membership.Move:
	case membership.HandOver:
		c.Stats.HandedOver++
		c.Network.Send(p.host, about.host, func() { about.member.Campaign() })
		c.Stage.At(p.host, time.Second, func() { done(r.Verb != membership.Transfer || r.Name != "", nil) })
		return
	case membership.AddLearner:
		next = latest.With(quorum.Server{ID: about.id})
	case membership.GiveVote:
		next = latest.With(quorum.Server{ID: about.id, Voter: true})
	case membership.TakeVote:
		next = latest.With(quorum.Server{ID: about.id})
	case membership.TakeOut:
		next = latest.Without(about.id)
	}
	if next == latest {
		c.checks.nothing(r, latest)
		done(false, nil)
		return
	}
	if !c.checks.decided(p, about, step.Action, next) {
		// A disk was lost since this node looked last.
		done(false, membership.ErrBusy)
		return
	}
	c.change(p, index, next, done)
}

// change carries a decision out, and waits for what becomes of it.
func (c *Cluster) change(p *place, after uint64, next *quorum.Configuration, done func(bool, error)) {
	index, ok := p.member.Change(after, next)
	if !ok {
		done(false, outcome.ErrNotLeader)
		return
	}
	until := p.host.Boot() + c.Stage.Between(0, waitMost)
	if c.Stage.Chance(3) {
		until = p.host.Boot() + c.Stage.Between(0, waitMost/20)
	}
	var wait func()
	wait = func() {
		switch {
		case p.member.Applied() >= index:
			done(false, nil)
		case !c.Leads(p.id) || p.host.Boot() > until:
			done(false, outcome.ErrUnknown)
			if r := c.wish(); r.Verb != 0 && c.Active() {
				// Nobody waits, and somebody has another wish.
				c.route(p, r, 0, func(bool, error) {})
			}
		default:
			c.Stage.At(p.host, 20*time.Millisecond, wait)
		}
	}
	wait()
}
