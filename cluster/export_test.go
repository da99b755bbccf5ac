package cluster

import "github.com/hashicorp/raft"

// Raft is for tests that change what the node itself has no verb for yet.
func (n *Node) Raft() *raft.Raft { return n.raft }
