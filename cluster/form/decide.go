package form

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
)

// action is what a node does next.
type action int

const (
	// wait and ask again.
	wait action = iota
	// bootstrap: carry out the plan, collecting promises first.
	bootstrap
	// adopt: the cluster exists and this node belongs to it.
	adopt
	// refuse: a person has to act.
	refuse
)

// decision is the action, with what it needs.
type decision struct {
	action    action
	clusterID string
	// members of the plan, sorted by Raft id.
	members []identity.Member
	// reason to wait or to refuse.
	reason string
}

func waiting(format string, args ...any) decision {
	return decision{action: wait, reason: fmt.Sprintf(format, args...)}
}

func refusing(format string, args ...any) decision {
	return decision{action: refuse, reason: fmt.Sprintf(format, args...)}
}

// self is what a node knows of itself.
type self struct {
	record identity.Record
	// peer is the advertised peer address.
	peer string
	// hasState: Raft has a log, a term or a snapshot here.
	hasState bool
	// expect is --bootstrap-expect, 0 where it was not given.
	expect int
	// learner is --learner.
	learner bool
}

// decide says what to do after a round of questions that seen answered, this
// node's own answer left out, no Raft id twice.
func decide(me self, seen []*peerv1.PeerInfo) decision {
	switch r := me.record; {
	case me.hasState && r.ClusterID == "":
		return refusing("the data directory of %s has Raft state but names no cluster", r.RaftID())
	case me.hasState:
		return decision{action: adopt, clusterID: r.ClusterID}
	case r.Formed:
		return refusing("the data directory of %s belongs to cluster %s but its Raft state is gone: "+
			"remove %s from the cluster, empty the data directory and add it again", r.RaftID(), r.ClusterID, r.Name)
	case len(r.Members) > 0:
		return decidePromised(r, seen)
	case r.ClusterID != "":
		return decision{action: adopt, clusterID: r.ClusterID}
	}
	return decideEmpty(me, seen)
}

// decidePromised is for a node that has promised, or planned, and has heard
// nothing of Raft yet.
func decidePromised(r identity.Record, seen []*peerv1.PeerInfo) decision {
	planner := r.Members[0].RaftID
	for _, p := range seen {
		if !p.GetHasState() || p.GetClusterId() != r.ClusterID {
			continue
		}
		if planner == r.RaftID() {
			// Nobody but this node can have bootstrapped it.
			return refusing("cluster %s runs at %s, but the Raft state of %s, which bootstrapped it, is gone: "+
				"remove %s from the cluster, empty the data directory and add it again",
				r.ClusterID, p.GetName(), r.RaftID(), r.Name)
		}
		return decision{action: adopt, clusterID: r.ClusterID}
	}
	if planner == r.RaftID() {
		return decision{action: bootstrap, clusterID: r.ClusterID, members: r.Members}
	}
	return waiting("%s has planned cluster %s and has yet to bootstrap it", planner, r.ClusterID)
}

// decideEmpty is for a node that belongs to nothing.
func decideEmpty(me self, seen []*peerv1.PeerInfo) decision {
	if d, ok := decideFormed(me, seen); ok {
		return d
	}
	if me.expect == 0 {
		return waiting("no cluster answers at the addresses of --join")
	}
	for _, p := range seen {
		switch expect := int(p.GetBootstrapExpect()); {
		case p.GetClusterId() != "":
			return waiting("%s belongs to the planned cluster %s", p.GetRaftId(), p.GetClusterId())
		case expect == 0:
			return waiting("%s was started without --bootstrap-expect", p.GetRaftId())
		case expect != me.expect:
			return refusing("%s was started with --bootstrap-expect %d, this node with %d",
				p.GetRaftId(), expect, me.expect)
		}
	}
	return decidePlan(me, seen)
}

// newestFirst orders answers by how much of the log stands behind them: a member that
// has just been started speaks of the members that its last snapshot names.
func newestFirst(seen []*peerv1.PeerInfo) []*peerv1.PeerInfo {
	seen = slices.Clone(seen)
	slices.SortStableFunc(seen, func(a, b *peerv1.PeerInfo) int {
		return cmp.Compare(b.GetAppliedIndex(), a.GetAppliedIndex())
	})
	return seen
}

// decideFormed looks whether a cluster exists. ok is false where none does.
func decideFormed(me self, seen []*peerv1.PeerInfo) (d decision, ok bool) {
	id, name := me.record.RaftID(), me.record.Name
	for _, p := range newestFirst(seen) {
		known := p.GetKnown()
		if !p.GetHasState() || p.GetClusterId() == "" {
			continue
		}
		if !slices.Contains(known, p.GetRaftId()) {
			// It has not read its own configuration yet, so it can't speak of ours.
			d, ok = waiting("%s of cluster %s does not know its members yet", p.GetRaftId(), p.GetClusterId()), true
			continue
		}
		if slices.Contains(known, id) {
			return decision{action: adopt, clusterID: p.GetClusterId()}, true
		}
		if slices.ContainsFunc(known, func(other string) bool { return identity.NameOf(other) == name }) {
			return refusing("%s is a member of cluster %s with another data directory; remove it first",
				name, p.GetClusterId()), true
		}
		if me.learner {
			return waiting("cluster %s at %s (%s) has yet to add this node: quorlease cluster add %s %s",
				p.GetClusterId(), p.GetName(), p.GetPeer(), name, me.peer), true
		}
		return refusing("cluster %s exists at %s (%s) and %s is not a member of it; add it first: "+
			"start it with --learner instead of --bootstrap-expect, and then quorlease cluster add %s %s",
			p.GetClusterId(), p.GetName(), p.GetPeer(), name, name, me.peer), true
	}
	return d, ok
}

// decidePlan looks whether everybody is there, and whether it is this node that
// has to act.
func decidePlan(me self, seen []*peerv1.PeerInfo) decision {
	members := []identity.Member{{RaftID: me.record.RaftID(), Peer: me.peer}}
	for _, p := range seen {
		members = append(members, identity.Member{RaftID: p.GetRaftId(), Peer: p.GetPeer()})
	}
	slices.SortFunc(members, func(a, b identity.Member) int { return strings.Compare(a.RaftID, b.RaftID) })
	if n := len(members); n > me.expect {
		return refusing("--join and this node are %d nodes (%s), --bootstrap-expect is %d", n, names(members), me.expect)
	} else if n < me.expect {
		return waiting("%d of %d nodes found: %s", n, me.expect, names(members))
	}
	if err := identity.CheckMembers(members, me.record.RaftID()); err != nil {
		return refusing("%v", err)
	}
	for _, p := range seen {
		for _, m := range members {
			if m.RaftID != p.GetRaftId() && !slices.Contains(p.GetKnown(), m.RaftID) {
				return waiting("%s does not know %s yet", p.GetRaftId(), m.RaftID)
			}
		}
	}
	if members[0].RaftID != me.record.RaftID() {
		return waiting("%s has to plan the cluster", members[0].RaftID)
	}
	return decision{action: bootstrap, members: members}
}

func names(members []identity.Member) string {
	var list []string
	for _, m := range members {
		list = append(list, m.RaftID)
	}
	return strings.Join(list, ", ")
}
