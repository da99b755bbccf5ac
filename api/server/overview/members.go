package overview

import (
	"context"
	"fmt"
	"net"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/identity"
)

// Changer changes who is a member. *cluster.Node is one. What comes back without an
// error has committed.
type Changer interface {
	AddMember(ctx context.Context, name, address string) (cluster.Change, error)
	RemoveMember(ctx context.Context, name string) (cluster.Change, error)
	Promote(ctx context.Context, name string) (cluster.Change, error)
	Demote(ctx context.Context, name string) (cluster.Change, error)
	TransferLeadership(ctx context.Context, name string) (cluster.Change, error)
}

// Add makes a learner of a node that waits, or follows a member to another address.
func (c *Cluster) Add(ctx context.Context, r *quorleasev1.ClusterAddRequest) (*quorleasev1.ClusterAddResponse, error) {
	if err := checkName(r.GetId()); err != nil {
		return nil, err
	}
	if err := checkPeer(r.GetPeer()); err != nil {
		return nil, err
	}
	change, err := c.changer.AddMember(ctx, r.GetId(), r.GetPeer())
	if err != nil {
		return nil, err
	}
	return &quorleasev1.ClusterAddResponse{Changed: change.Changed}, nil
}

// Remove takes a member out.
func (c *Cluster) Remove(
	ctx context.Context, r *quorleasev1.ClusterRemoveRequest,
) (*quorleasev1.ClusterRemoveResponse, error) {
	change, err := named(ctx, r.GetId(), c.changer.RemoveMember)
	if err != nil {
		return nil, err
	}
	return &quorleasev1.ClusterRemoveResponse{Changed: change.Changed}, nil
}

// Promote gives a learner a vote.
func (c *Cluster) Promote(
	ctx context.Context, r *quorleasev1.ClusterPromoteRequest,
) (*quorleasev1.ClusterPromoteResponse, error) {
	change, err := named(ctx, r.GetId(), c.changer.Promote)
	if err != nil {
		return nil, err
	}
	return &quorleasev1.ClusterPromoteResponse{Changed: change.Changed}, nil
}

// Demote makes a learner of a voter.
func (c *Cluster) Demote(
	ctx context.Context, r *quorleasev1.ClusterDemoteRequest,
) (*quorleasev1.ClusterDemoteResponse, error) {
	change, err := named(ctx, r.GetId(), c.changer.Demote)
	if err != nil {
		return nil, err
	}
	return &quorleasev1.ClusterDemoteResponse{Changed: change.Changed}, nil
}

// TransferLeadership makes another voter the leader.
func (c *Cluster) TransferLeadership(
	ctx context.Context, r *quorleasev1.ClusterTransferLeadershipRequest,
) (*quorleasev1.ClusterTransferLeadershipResponse, error) {
	if r.GetId() != "" {
		if err := checkName(r.GetId()); err != nil {
			return nil, err
		}
	}
	change, err := c.changer.TransferLeadership(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	return &quorleasev1.ClusterTransferLeadershipResponse{Changed: change.Changed, Leader: change.Leader}, nil
}

func named(
	ctx context.Context, id string, change func(context.Context, string) (cluster.Change, error),
) (cluster.Change, error) {
	if err := checkName(id); err != nil {
		return cluster.Change{}, err
	}
	return change(ctx, id)
}

func checkName(id string) error {
	if identity.CheckName(id) != nil {
		return convert.Wrong("id", fmt.Sprintf("%.80q must match [a-z0-9][a-z0-9_.-]{0,62}", id))
	}
	return nil
}

// peerMax bounds an address, in bytes.
const peerMax = 256

func checkPeer(address string) error {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host == "" || port == "" || port == "0" || ip != nil && ip.IsUnspecified() ||
		len(address) > peerMax {
		return convert.Wrong("peer", fmt.Sprintf("%.80q must be host:port that others can dial", address))
	}
	return nil
}
