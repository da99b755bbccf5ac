package fsm

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// nodesMost bounds the members. Consensus gets slow long before.
const nodesMost = 64

// applySetNode records a member's addresses, or forgets a member.
func (m *Machine) applySetNode(op *logv1.SetNode) (*logv1.Result, error) {
	node := op.GetNode()
	if err := checkText("node.raft_id", node.GetRaftId(), 1, maxText); err != nil {
		return nil, err
	}
	i, found := slices.BinarySearchFunc(m.nodes, node.GetRaftId(), func(n *logv1.NodeRecord, id string) int {
		return strings.Compare(n.GetRaftId(), id)
	})
	if op.GetRemove() {
		if found {
			m.sum -= sumNode(m.nodes[i])
			m.effect(Effect{Kind: NodeRemoved, Node: m.nodes[i]})
			m.nodes = slices.Concat(m.nodes[:i], m.nodes[i+1:])
		}
		return done(), nil
	}
	if err := checkNode(node); err != nil {
		return nil, err
	}
	if found && proto.Equal(m.nodes[i], node) {
		return done(), nil
	}
	if !found && len(m.nodes) >= nodesMost {
		return nil, badField("node", "%d nodes are known: at most %d", len(m.nodes), nodesMost)
	}
	// Snapshots and readers keep the list as it was.
	nodes := slices.Clone(m.nodes)
	if found {
		m.sum -= sumNode(nodes[i])
		nodes[i] = proto.CloneOf(node)
	} else {
		nodes = slices.Insert(nodes, i, proto.CloneOf(node))
	}
	m.nodes = nodes
	m.sum += sumNode(nodes[i])
	m.effect(Effect{Kind: NodeSet, Node: nodes[i]})
	return done(), nil
}

func checkNode(n *logv1.NodeRecord) error {
	for _, one := range []struct{ field, text string }{
		{"node.name", n.GetName()}, {"node.peer", n.GetPeer()}, {"node.grpc", n.GetGrpc()},
		{"node.http", n.GetHttp()}, {"node.version", n.GetVersion()},
	} {
		if err := checkText(one.field, one.text, 0, maxText); err != nil {
			return err
		}
	}
	return nil
}

// Nodes are the members in the order of their Raft ids. They must not be
// changed.
func (m *Machine) Nodes() []*logv1.NodeRecord { return m.nodes }

// Bounds of the caps.
const (
	keysMost    = 100_000_000
	leasesMost  = 100_000_000
	limitsMost  = 10_000
	clientsMost = 10_000_000
)

// applyForm gives the cluster its id and caps, once.
func (m *Machine) applyForm(op *logv1.Form) (*logv1.Result, error) {
	id := op.GetClusterId()
	if !isClusterID(id) {
		return nil, badField("cluster_id", "%q: must be 32 lower-case hex digits", clip(id))
	}
	if m.clusterID == id {
		return done(), nil
	}
	if m.clusterID != "" {
		return nil, badField("cluster_id", "%q: the cluster is %s since it formed", id, m.clusterID)
	}
	caps, err := checkCaps(op.GetCaps())
	if err != nil {
		return nil, err
	}
	m.clusterID, m.caps = id, caps
	m.effect(Effect{Kind: Formed, Value: id})
	return done(), nil
}

func isClusterID(id string) bool {
	if len(id) != 32 {
		return false
	}
	return strings.Trim(id, "0123456789abcdef") == ""
}

// checkCaps fills in what is left out.
func checkCaps(caps *logv1.Caps) (*logv1.Caps, error) {
	full := DefaultCaps()
	for _, one := range []struct {
		field string
		given int64
		to    *int64
		most  int64
	}{
		{"caps.keys", caps.GetKeys(), &full.Keys, keysMost},
		{"caps.leases", caps.GetLeases(), &full.Leases, leasesMost},
		{"caps.limits", caps.GetLimits(), &full.Limits, limitsMost},
		{"caps.clients", caps.GetClients(), &full.Clients, clientsMost},
	} {
		if one.given < 0 || one.given > one.most {
			return nil, badField(one.field, "%d: must be from 0 (the default) to %d", one.given, one.most)
		}
		if one.given > 0 {
			*one.to = one.given
		}
	}
	return full, nil
}
