package cluster

import (
	"context"
	"errors"
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/membership"
	"github.com/quorlease/quorlease/cluster/peers"
	"github.com/quorlease/quorlease/cluster/roster"
	"github.com/quorlease/quorlease/cluster/wire"
)

// Change is what came of a change of the members.
type Change = roster.Result

// Why the members are not changed. Each says that nothing was.
var (
	// ErrUnknownMember: there is no member of this name.
	ErrUnknownMember = membership.ErrUnknown
	// ErrNotReady: the node has to get further first; waiting helps.
	ErrNotReady = membership.ErrNotReady
	// ErrChanging: another change is under way.
	ErrChanging = membership.ErrBusy
	// ErrChangeRefused: the cluster would be worse off, or it makes no sense.
	ErrChangeRefused = membership.ErrRefused
)

// AddMember makes a learner of the node called name that waits at a peer address, or
// gives the member of this name that address.
func (n *Node) AddMember(ctx context.Context, name, address string) (Change, error) {
	return n.changer.Change(ctx, membership.Add, name, address)
}

// RemoveMember takes a member out. It stops, and stays out with its data directory.
func (n *Node) RemoveMember(ctx context.Context, name string) (Change, error) {
	return n.changer.Change(ctx, membership.Remove, name, "")
}

// Promote gives a learner a vote, if it has caught up and stayed so.
func (n *Node) Promote(ctx context.Context, name string) (Change, error) {
	return n.changer.Change(ctx, membership.Promote, name, "")
}

// Demote makes a learner of a voter.
func (n *Node) Demote(ctx context.Context, name string) (Change, error) {
	return n.changer.Change(ctx, membership.Demote, name, "")
}

// TransferLeadership makes the voter called name the leader, or without a name the
// one that lags least.
func (n *Node) TransferLeadership(ctx context.Context, name string) (Change, error) {
	return n.changer.Change(ctx, membership.Transfer, name, "")
}

// openChanger prepares to change who is a member.
func (n *Node) openChanger() error {
	n.changer = roster.NewChanger(roster.ChangerConfig{
		Roster: n.roster, Self: string(n.id), Leads: n.Leads, Leader: n.otherLeader, Leaderless: n.leaderless,
		Member: n.prober.Member, Outside: n.askOutside, Client: n.peers.Client, Classify: classify,
		Cluster: func() string { return n.identity.Record().ClusterID },
		Changed: n.announcer.nudge, Logger: n.logger.Named("roster"),
	})
	return nil
}

// keepRoster keeps the records of members until ctx ends or this node is found
// to be removed.
func (n *Node) keepRoster(ctx context.Context) {
	roster.NewKeeper(roster.KeeperConfig{
		Roster: n.roster, Record: n.record, Identity: n.identity.Record, Caps: n.config.Caps, Join: n.config.Join,
		View: n.fsm.view, Leads: n.Leads, Leaderless: n.leaderUnknown,
		Do: func(ctx context.Context, op *logv1.Operation) error {
			_, err := n.Do(ctx, op, 0)
			return err
		},
		Ask: n.askWho, Outside: n.askOutside, Survey: n.dialer.Survey,
		Removed: func() { n.fail(errors.Join(ErrRemoved, n.identity.Remove())) },
		Wake:    n.announcer.wake, Logger: n.logger.Named("roster"),
	}).Run(ctx)
}

// askWho asks the node at an address who it is.
func (n *Node) askWho(ctx context.Context, address string) (*peerv1.PeerInfo, error) {
	return n.ask(ctx, address, n.info())
}

// askOutside asks the node at an address who it is, as one that belongs to no cluster: so
// it answers whichever its own is, and whether this node is a member of that or not.
func (n *Node) askOutside(ctx context.Context, address string) (*peerv1.PeerInfo, error) {
	clients := peers.New(wire.NewDialer(wire.DialerConfig{
		Network: n.outgoing.Network(), Self: func() (string, string) { return "", string(n.id) },
	}).DialGRPC)
	defer func() { _ = clients.Close() }()
	client, err := clients.Client(address)
	if err != nil {
		return nil, err
	}
	response, err := client.Probe(ctx, &peerv1.ProbeRequest{})
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", address, err)
	}
	return response.GetSelf(), nil
}

// restoreRoster takes over the members that the newest snapshot names, which is the one
// that is being restored.
func (n *Node) restoreRoster() {
	stored, err := n.stores.Snapshots.List()
	if err != nil {
		n.logger.Warn("snapshot not read for its members", "err", err)
		return
	}
	if len(stored) > 0 {
		n.roster.Store(stored[0].ConfigurationIndex, stored[0].Configuration)
	}
}
