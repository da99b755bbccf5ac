package overview

import (
	"context"
	"fmt"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Cluster is the service Cluster of a node. It is safe for concurrent use.
type Cluster struct {
	quorleasev1.UnimplementedClusterServer
	node    Node
	changer Changer
}

// NewCluster returns the service.
func NewCluster(node Node, changer Changer) *Cluster { return &Cluster{node: node, changer: changer} }

// Status says how the cluster looks from this node, also without a quorum.
func (c *Cluster) Status(
	context.Context, *quorleasev1.ClusterStatusRequest,
) (*quorleasev1.ClusterStatusResponse, error) {
	return convert.StatusAnswer(c.node.Status()), nil
}

// State is the digest of this node's replica.
func (c *Cluster) State(
	ctx context.Context, _ *quorleasev1.ClusterStateRequest,
) (*quorleasev1.ClusterStateResponse, error) {
	answer := &quorleasev1.ClusterStateResponse{Node: c.node.Status().Self}
	err := c.node.View(ctx, true, func(m *fsm.Machine, _ bucket.Instant) {
		answer.AppliedIndex, answer.Hash = m.Index(), fmt.Sprintf("%016x", m.Hash())
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}
