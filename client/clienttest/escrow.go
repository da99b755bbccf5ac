package clienttest

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/escrow"
)

// heldLife is that of a lease that a node granted from what it held.
const heldLife = 5 * time.Second

// Stock gives nodes that many tokens of a limit to grant from memory, whoever leads: acquires
// that are not tracked, of one charge. A node that hangs answers nobody all the same.
func (c *Cluster) Stock(limit string, tokens int64, nodes ...int) {
	picked := c.pick(nodes)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range picked {
		if n.stock == nil {
			n.stock = map[string]int64{}
		}
		n.stock[limit] = tokens
	}
}

// Grant grants from what Stock gave the node, and leaves everything else to Submit.
func (n *node) Grant(p *cluster.Pending, _ *escrow.Room) *logv1.Result {
	op := p.Operation.GetAcquire()
	if op.GetTrack() || len(op.GetCharges()) != 1 {
		return nil
	}
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	charge := op.GetCharges()[0]
	if n.mode == hanging || n.closed || n.stock[charge.GetLimit()] < charge.GetAmount() {
		return nil
	}
	n.stock[charge.GetLimit()] -= charge.GetAmount()
	n.counts.Operations++
	n.counts.Acquires++
	return &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: &logv1.AcquireResult{
		Granted: true, Escrow: true, State: logv1.LeaseState_LEASE_STATE_OPEN, Ttl: int64(heldLife),
		Charges: op.GetCharges(),
	}}}
}
