package cluster

import (
	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster/disk"
)

// Raft is for tests that change what the node itself has no verb for.
func (n *Node) Raft() *raft.Raft { return n.raft }

// DiskStalled is what the watchdog calls.
func (n *Node) DiskStalled(e *disk.StallError) { n.diskStalled(e) }

// DiskFailed is what the watchdog calls.
func (n *Node) DiskFailed(err error) { n.diskFailed(err) }

// VerifyLeads is what a read asks.
func (n *Node) VerifyLeads(term uint64) error { return n.verifyLeads(term) }

// FirstIndex is the index of the first entry that is still in the log.
func (n *Node) FirstIndex() uint64 {
	first, err := n.stores.Log.FirstIndex()
	if err != nil {
		return 0
	}
	return first
}
