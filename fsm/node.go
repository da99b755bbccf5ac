package fsm

import (
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// applySetNode records a member's addresses, or forgets a member.
func (m *Machine) applySetNode(op *logv1.SetNode) (*logv1.Result, error) {
	node := op.GetNode()
	if op.GetRemove() {
		if err := refuse.Text("node.raft_id", node.GetRaftId(), 1, check.MaxText); err != nil {
			return nil, err
		}
		if gone := m.state.RemoveNode(node.GetRaftId()); gone != nil {
			m.effects.Add(effect.Effect{Kind: effect.NodeRemoved, Node: gone})
		}
		return done(), nil
	}
	if err := check.Node(node); err != nil {
		return nil, refuse.Wrong("", err)
	}
	i, found := m.state.FindNode(node.GetRaftId())
	known := m.state.Nodes()
	switch {
	case found && proto.Equal(known[i], node):
		return done(), nil
	case !found && len(known) >= check.MaxNodes:
		return nil, refuse.Field("node", "%d nodes are known: at most %d", len(known), check.MaxNodes)
	}
	node = proto.CloneOf(node)
	m.state.SetNode(node)
	m.effects.Add(effect.Effect{Kind: effect.NodeSet, Node: node})
	return done(), nil
}

// applyForm gives the cluster its id and caps, once.
func (m *Machine) applyForm(op *logv1.Form) (*logv1.Result, error) {
	id := op.GetClusterId()
	switch {
	case !check.IsClusterID(id):
		return nil, refuse.Field("cluster_id", "%q: must be 32 lower-case hex digits", check.Clip(id))
	case m.state.ClusterID == id:
		return done(), nil
	case m.state.ClusterID != "":
		return nil, refuse.Field("cluster_id", "%q: the cluster is %s since it formed", id, m.state.ClusterID)
	}
	caps, err := check.Caps(op.GetCaps())
	if err != nil {
		return nil, refuse.Wrong("", err)
	}
	if err := m.fits(caps); err != nil {
		return nil, err
	}
	m.state.ClusterID, m.state.Caps = id, caps
	m.effects.Add(effect.Effect{Kind: effect.Formed, Value: id})
	return done(), nil
}

// fits refuses caps that the state has passed already. A cluster forms before
// anything else happens; a log that says otherwise must not break the caps.
func (m *Machine) fits(caps *logv1.Caps) error {
	for _, one := range []struct {
		field string
		have  int
		most  int64
	}{
		{"caps.keys", m.state.Keys(), caps.GetKeys()},
		{"caps.leases", max(m.state.Leases(), m.state.Ledger.Len()), caps.GetLeases()},
		{"caps.limits", max(m.state.Limits(), len(m.state.Budgets())), caps.GetLimits()},
		{"caps.clients", m.state.Clients(), caps.GetClients()},
	} {
		if int64(one.have) > one.most {
			return refuse.Field(one.field, "%d: there are %d already", one.most, one.have)
		}
	}
	return nil
}
