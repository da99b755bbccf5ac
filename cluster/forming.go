package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/form"
	"github.com/quorlease/quorlease/cluster/identity"
)

// openForming makes this node find the cluster it belongs to, or form one.
func (n *Node) openForming() error {
	former, err := form.New(form.Config{
		Identity: n.identity, Peer: n.advertise, HasState: n.hasState,
		Expect: n.config.BootstrapExpect, Join: n.config.Join, Learner: n.config.Learner,
		Probe: func(ctx context.Context, address string) (*peerv1.PeerInfo, error) {
			return n.ask(ctx, address, n.info())
		},
		Promise: n.askPromise, Bootstrap: n.bootstrap,
		Logger: n.logger.Named("form"),
	})
	if err != nil {
		return err
	}
	n.former = former
	return nil
}

// refuseStrangers stops a node that was started among another cluster's nodes:
// its data directory, or its --join, is not the one that was meant.
func (n *Node) refuseStrangers(ctx context.Context) {
	others := slices.DeleteFunc(slices.Clone(n.config.Join), func(a string) bool { return a == n.advertise })
	if err := n.dialer.Strangers(ctx, others); err != nil && ctx.Err() == nil {
		n.fail(fmt.Errorf("%w: none of --join is a node of this data directory's cluster: %w", ErrRefused, err))
	}
}

// formOrFind runs until this node belongs to a cluster, or can't.
func (n *Node) formOrFind(ctx context.Context) {
	outcome, err := n.former.Run(ctx)
	switch {
	case err == nil:
		n.logger.Info("belongs to a cluster", "cluster", outcome.ClusterID)
		n.announcer.nudge()
	case ctx.Err() != nil:
	case errors.Is(err, ErrRefused):
		n.fail(err)
	default:
		n.fail(fmt.Errorf("%w: %w", ErrProtected, err))
	}
}

// askPromise asks one member of a plan.
func (n *Node) askPromise(ctx context.Context, address string, request *peerv1.PromiseRequest) (
	*peerv1.PromiseResponse, error,
) {
	client, err := n.peers.Client(address)
	if err != nil {
		return nil, err
	}
	response, err := client.Promise(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("ask %s to promise: %w", address, err)
	}
	return response, nil
}

// bootstrap gives raft its first configuration. Doing it again is harmless.
func (n *Node) bootstrap(_ context.Context, _ string, members []identity.Member) error {
	var c raft.Configuration
	for _, m := range members {
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(m.RaftID), Address: raft.ServerAddress(m.Peer),
		})
	}
	if err := n.raft.BootstrapCluster(c).Error(); err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("bootstrap raft: %w", err)
	}
	return nil
}

// known are the members, or while there are none those found so far.
func (n *Node) known() []string {
	members := n.roster.Applied()
	if len(members) == 0 {
		return n.former.Known()
	}
	ids := make([]string, 0, len(members))
	for _, m := range members {
		ids = append(ids, m.RaftID)
	}
	return ids
}
