// Package status is how a cluster looks from one of its nodes: who is a member, who
// leads, and whether anything can be decided.
package status

import "strconv"

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

// Node is one member as this node sees it.
type Node struct {
	// RaftID is Name, a dot and the incarnation.
	RaftID string
	// Name is the operator's name for the node.
	Name string
	Role Role
	// Healthy: it answers probes and lags by fewer than 250 entries.
	Healthy bool
	// Answers: it answers probes. Lag is how many entries it was behind the leader when
	// it last did.
	Answers bool
	Lag     uint64
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
	Nodes []Node
	// Quorum says whether operations can be decided.
	Quorum Quorum
	// Applied is the index of the last entry applied here.
	Applied uint64
	// Ready: a leader is known and this node has caught up with it.
	Ready bool
}
