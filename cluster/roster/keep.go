package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/wire"
	"github.com/quorlease/quorlease/fsm"
)

const (
	// announceEvery is how often a node compares its record with what is replicated,
	// and findEvery how often one that is about to join looks who the members are.
	announceEvery = time.Second
	findEvery     = 250 * time.Millisecond
)

// KeeperConfig says what a Keeper keeps, and how it reaches the rest of its node. All
// of it is required.
type KeeperConfig struct {
	Roster *Roster
	// Record is this node as the others should know it, Identity what is on its disk.
	Record   func() *logv1.NodeRecord
	Identity func() identity.Record
	// Caps bound the state of the cluster that this node forms. Nil: the defaults.
	Caps *logv1.Caps
	// Join are addresses at which members may be.
	Join []string
	// View reads the replica. Leads says that this node serves as the leader,
	// Leaderless that it knows of no leader.
	View              func(func(*fsm.Machine))
	Leads, Leaderless func() bool
	// Do proposes one operation.
	Do func(context.Context, *logv1.Operation) error
	// Ask asks a peer who it is, Outside as one that belongs to no cluster, Survey what
	// peers make of this node.
	Ask, Outside func(ctx context.Context, address string) (*peerv1.PeerInfo, error)
	Survey       func(ctx context.Context, addresses []string) wire.Survey
	// Removed is called, once, when this node was removed.
	Removed func()
	// Wake ends a pause.
	Wake   <-chan struct{}
	Logger hclog.Logger
}

// Keeper keeps the replicated records in step with the configuration.
type Keeper struct {
	config KeeperConfig
	self   string
	// member: this node was one, by what it has applied. belongs to Run's goroutine.
	member bool
	// refused counts the rounds in a row in which most voters disowned this node.
	refused int
}

// NewKeeper returns a keeper. Run does the work.
func NewKeeper(c KeeperConfig) *Keeper {
	return &Keeper{config: c, self: c.Record().GetRaftId()}
}

// Run keeps this node's record as it is, forms the cluster's state if nobody has,
// forgets the records of members that have gone where this node leads, and notices
// when this node was removed. It returns then, or when ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(announceEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			k.countRefusals(ctx)
			k.introduce(ctx)
			timer.Reset(k.pause())
		case <-k.config.Wake:
		}
		if k.isRemoved() || k.refused >= refusalsMax {
			k.config.Removed()
			return
		}
		if err := errors.Join(k.announce(ctx), k.forget(ctx)); err != nil && !errors.Is(err, outcome.ErrNoLeader) {
			k.config.Logger.Debug("records of members not brought up to date", "err", err)
		}
	}
}

func (k *Keeper) pause() time.Duration {
	if k.joining() {
		return findEvery
	}
	return announceEvery
}

// joining reports whether this node belongs to a cluster that has it as a member, and
// has yet to read that in the log.
func (k *Keeper) joining() bool {
	return k.config.Identity().ClusterID != "" && k.config.Roster.Joins(k.self)
}

// introduce finds out whom this node's cluster calls members, while its own log does
// not reach that far: by the old ones that it has read of, it would turn away a
// leader that came later.
func (k *Keeper) introduce(ctx context.Context) {
	if !k.joining() {
		k.config.Roster.vouch(nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cluster := k.config.Identity().ClusterID
	var vouched []string
	for _, address := range k.config.Join {
		info, err := k.config.Ask(ctx, address)
		if err != nil || info.GetClusterId() != cluster || !info.GetHasState() || !slices.Contains(info.GetKnown(), k.self) {
			continue
		}
		vouched = append(vouched, info.GetKnown()...)
	}
	if len(vouched) > 0 {
		k.config.Roster.vouch(vouched)
	}
}

// announce proposes what the replicated state lacks: the cluster's id, if this node
// leads, and this node's record.
func (k *Keeper) announce(ctx context.Context) error {
	var clusterID string
	var mine *logv1.NodeRecord
	k.config.View(func(m *fsm.Machine) {
		clusterID = m.ClusterID()
		for _, record := range m.Nodes() {
			if record.GetRaftId() == k.self {
				mine = proto.CloneOf(record)
			}
		}
	})
	if clusterID == "" {
		if !k.config.Leads() {
			return nil
		}
		if err := k.form(ctx); err != nil {
			return err
		}
	}
	record := k.config.Record()
	if proto.Equal(mine, record) || k.config.Leaderless() {
		return nil
	}
	op := &logv1.Operation{Kind: &logv1.Operation_SetNode{SetNode: &logv1.SetNode{Node: record}}}
	if err := k.config.Do(ctx, op); err != nil {
		return fmt.Errorf("announce node: %w", err)
	}
	return nil
}

// form proposes the first operation of the cluster.
func (k *Keeper) form(ctx context.Context) error {
	op := &logv1.Operation{Kind: &logv1.Operation_Form{Form: &logv1.Form{
		ClusterId: k.config.Identity().ClusterID, Caps: k.config.Caps,
	}}}
	if err := k.config.Do(ctx, op); err != nil {
		return fmt.Errorf("form cluster: %w", err)
	}
	return nil
}

// forget proposes, at the leader, to drop the records of those who are members no
// more: a removal that was interrupted is made complete by the next leader.
func (k *Keeper) forget(ctx context.Context) error {
	if !k.config.Leads() {
		return nil
	}
	var gone []string
	k.config.View(func(m *fsm.Machine) {
		for _, record := range m.Nodes() {
			gone = append(gone, record.GetRaftId())
		}
	})
	// Read after the records: whoever has one was made a member before.
	members, _ := k.config.Roster.certain()
	if len(members) == 0 {
		return nil
	}
	gone = slices.DeleteFunc(gone, func(id string) bool { return has(members, id) })
	for _, id := range gone {
		op := &logv1.Operation{Kind: &logv1.Operation_SetNode{SetNode: &logv1.SetNode{
			Node: &logv1.NodeRecord{RaftId: id}, Remove: true,
		}}}
		if err := k.config.Do(ctx, op); err != nil {
			return fmt.Errorf("forget node %s: %w", id, err)
		}
	}
	return nil
}
