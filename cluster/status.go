package cluster

import (
	"slices"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/status"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm"
)

// Status is the cluster as a node sees it.
type Status = status.Status

// NodeStatus is one member as a node sees it.
type NodeStatus = status.Node

// Quorum says whether the cluster can decide, as far as a node can see.
type Quorum = status.Quorum

// Role is a member's part in elections.
type Role = status.Role

// The states of a quorum, and the roles.
const (
	HasLeader = status.HasLeader
	NoLeader  = status.NoLeader
	NoQuorum  = status.NoQuorum
	Voter     = status.Voter
	Learner   = status.Learner
)

// Status returns how the cluster looks from here. It asks nobody.
func (n *Node) Status() Status {
	leader := n.Leader()
	seen := Status{
		Self: n.config.ID, Leader: leader, Term: n.raft.CurrentTerm(),
		Quorum: n.quorum(), Applied: n.fsm.reached.Last(),
	}
	records := make(map[string]*logv1.NodeRecord)
	n.fsm.view(func(m *fsm.Machine) {
		seen.ClusterID = m.ClusterID()
		for _, r := range m.Nodes() {
			records[r.GetRaftId()] = r
		}
	})
	for _, m := range n.roster.Latest() {
		// Before a member has announced itself there is only what raft knows.
		r := records[m.RaftID]
		node := NodeStatus{
			RaftID: m.RaftID, Name: m.Name, Role: Learner, Peer: m.Address,
			GRPC: r.GetGrpc(), HTTP: r.GetHttp(), Version: r.GetVersion(),
			Healthy: n.prober.IsHealthy(m.RaftID),
		}
		node.Lag, node.Answers = n.prober.Lag(m.RaftID)
		if m.Voter {
			node.Role = Voter
		}
		seen.Nodes = append(seen.Nodes, node)
	}
	slices.SortFunc(seen.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.RaftID, b.RaftID) })
	seen.Ready = leader != "" && seen.ClusterID != "" && n.prober.IsHealthy(string(n.id))
	return seen
}

// addGauges adds the figures that are read when somebody asks.
func (n *Node) addGauges() {
	yes := map[bool]float64{true: 1}
	n.metrics.Gauge("quorlease_has_quorum", "1 while a majority is there and has a leader.", func() float64 {
		return yes[n.quorum() == HasLeader]
	})
	n.metrics.Sizes(func() (sizes fsm.Counts) {
		n.fsm.view(func(m *fsm.Machine) { sizes = m.Counts() })
		return sizes
	})
	n.metrics.Offenders(func() []warn.Offender { return n.budgets.Tops().Worst(n.config.TopClients) })
	n.metrics.Gauge("quorlease_clients_over_budget", "Clients whose retry budget is spent.",
		func() float64 { return float64(n.budgets.Tops().Over) })
	n.metrics.Queues(n.waiting.Depths)
	n.metrics.Levels(n.viewNow)
	n.metrics.Escrow(n.grants.Wallet)
	n.metrics.Gauge("quorlease_voters", "Members that vote.", func() float64 {
		voters, _ := n.roster.Count()
		return float64(voters)
	})
	n.metrics.Gauge("quorlease_learners", "Members that do not vote.", func() float64 {
		_, learners := n.roster.Count()
		return float64(learners)
	})
	n.metrics.Gauge("quorlease_follower_lag_entries",
		"At the leader, how many entries the slowest member that answers is behind.", n.lag)
	n.metrics.Counter("quorlease_peers_refused_total",
		"Connections to the peer port that were turned away: strangers, other clusters, too many.", n.listener.Refused)
	n.metrics.Gauge("quorlease_disk_free_bytes", "Free space on the disk of the data directory.", func() float64 {
		return float64(n.space.Last().Free)
	})
	n.metrics.Gauge("quorlease_disk_min_free_bytes", "Free space below which the leader proposes nothing more.",
		func() float64 { return float64(n.space.Last().Need) })
}

func (n *Node) lag() float64 {
	if n.proposer.term() == 0 {
		return 0
	}
	var most uint64
	for _, member := range n.roster.Applied() {
		if m, ok := n.prober.Member(member.RaftID); ok && m.Answers {
			most = max(most, m.Lag)
		}
	}
	return float64(most)
}

// Leads reports whether this node serves as the leader: it was elected and has
// applied everything that was committed before. Another may have been elected
// since.
func (n *Node) Leads() bool { return n.proposer.term() != 0 }

// Leader is the name of the node that leads, as far as this one knows, or empty. It
// takes no lock of the state.
func (n *Node) Leader() string {
	_, id := n.raft.LeaderWithID()
	return identity.NameOf(string(id))
}
