package cluster

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm"
)

// Quorum says whether the cluster can decide, as far as this node can see.
type Quorum int

// The states of a quorum.
const (
	// HasLeader: there is a leader.
	HasLeader Quorum = iota + 1
	// NoLeader: a majority is there and has no leader: an election.
	NoLeader
	// NoQuorum: fewer than a majority of the voters are there.
	NoQuorum
)

// String names the state as in errors and JSON.
func (q Quorum) String() string {
	switch q {
	case HasLeader:
		return "HAS_LEADER"
	case NoLeader:
		return "NO_LEADER"
	case NoQuorum:
		return "NO_QUORUM"
	}
	return strconv.Itoa(int(q))
}

// Role is a member's part in elections.
type Role string

// The roles.
const (
	Voter   Role = "VOTER"
	Learner Role = "LEARNER"
)

// NodeStatus is one member as this node sees it.
type NodeStatus struct {
	// RaftID is Name, a dot and the incarnation.
	RaftID string
	// Name is the operator's name for the node.
	Name string
	Role Role
	// Healthy: it answers probes and lags by fewer than 250 entries.
	Healthy bool
	// Peer is raft's address; the others are what the node announced.
	Peer, GRPC, HTTP, Version string
}

// Status is the cluster as this node sees it.
type Status struct {
	// ClusterID is empty until the cluster is formed.
	ClusterID string
	// Self and Leader are names without incarnation. Leader is empty where none
	// is known.
	Self, Leader string
	Term         uint64
	// Nodes are the members, by name.
	Nodes []NodeStatus
	// Quorum says whether operations can be decided.
	Quorum Quorum
	// Applied is the index of the last entry applied here.
	Applied uint64
	// Ready: a leader is known and this node has caught up with it.
	Ready bool
}

// Status returns how the cluster looks from here. It asks nobody.
func (n *Node) Status() Status {
	_, leader := n.raft.LeaderWithID()
	status := Status{
		Self: n.config.ID, Leader: identity.NameOf(string(leader)), Term: n.raft.CurrentTerm(),
		Quorum: n.quorum(), Applied: n.fsm.reached.Last(),
	}
	records := make(map[string]*logv1.NodeRecord)
	n.fsm.view(func(m *fsm.Machine) {
		status.ClusterID = m.ClusterID()
		for _, r := range m.Nodes() {
			records[r.GetRaftId()] = r
		}
	})
	for _, s := range n.configuration().Servers {
		id := string(s.ID)
		// Before a member has announced itself there is only what raft knows.
		r := records[id]
		node := NodeStatus{
			RaftID: id, Name: identity.NameOf(id), Role: Learner, Peer: string(s.Address),
			GRPC: r.GetGrpc(), HTTP: r.GetHttp(), Version: r.GetVersion(),
			Healthy: n.prober.IsHealthy(id),
		}
		if s.Suffrage == raft.Voter {
			node.Role = Voter
		}
		status.Nodes = append(status.Nodes, node)
	}
	slices.SortFunc(status.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.RaftID, b.RaftID) })
	status.Ready = leader != "" && status.ClusterID != "" && n.prober.IsHealthy(string(n.id))
	return status
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
	n.metrics.Offenders(func() []warn.Offender { return n.budgets.Tops().Offenders })
	n.metrics.Gauge("quorlease_clients_over_budget", "Clients whose retry budget is spent.",
		func() float64 { return float64(n.budgets.Tops().Over) })
	n.metrics.Queues(n.waiting.Depths)
	n.metrics.Levels(n.viewNow)
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
	for _, s := range n.configuration().Servers {
		if m, ok := n.prober.Member(string(s.ID)); ok && m.Answers {
			most = max(most, m.Lag)
		}
	}
	return float64(most)
}

// Leads reports whether this node serves as the leader: it was elected and has
// applied everything that was committed before. Another may have been elected
// since.
func (n *Node) Leads() bool { return n.proposer.term() != 0 }
