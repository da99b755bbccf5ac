package roster

import (
	"context"
	"slices"
	"time"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
)

const (
	// refusalsMax is in how many rounds in a row, announceEvery apart, a node without a
	// leader must be refused before it believes that it was removed: a member that
	// was just added is refused by those who have not heard of it yet.
	refusalsMax = 3
	// lookMax bounds the question who is a member by now.
	lookMax = time.Second
)

// countRefusals counts rounds without a leader in which most of the other voters say
// that this node is no member, or one shows that it was removed. A leader stops talking to a
// follower that it removes, often before the follower has heard that the removal is
// committed, and nobody tells it later (R33): it would campaign for ever. A voter that
// can't be reached says nothing.
func (k *Keeper) countRefusals(ctx context.Context) {
	if !k.config.Leaderless() {
		k.refused = 0
		return
	}
	var others []string
	for _, m := range k.config.Roster.Latest() {
		if m.RaftID != k.self && m.Voter {
			others = append(others, m.Address)
		}
	}
	if !k.disowned(ctx, others) {
		k.refused = 0
		return
	}
	k.refused++
}

// disowned reports whether the other voters, at these addresses, make it plain that this node
// is no member.
func (k *Keeper) disowned(ctx context.Context, others []string) bool {
	found := k.config.Survey(ctx, others)
	return found.Unknown > len(others)/2 || found.Unknown > 0 && k.outlived(ctx, others)
}

// outlived reports whether some member has applied more of the log than the
// configuration that has this node, and goes by one without it. That one is certain, and
// an incarnation that was removed is never added again: one such member is enough, where
// those who voted with this node have gone since.
func (k *Keeper) outlived(ctx context.Context, addresses []string) bool {
	members, index := k.config.Roster.certain()
	if !has(members, k.self) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	return slices.ContainsFunc(addresses, func(address string) bool {
		info, err := k.config.Outside(ctx, address)
		return err == nil && k.removedBy(info, index)
	})
}

// removedBy reports whether a member that has applied more than index goes by a
// configuration without this node.
func (k *Keeper) removedBy(info *peerv1.PeerInfo, index uint64) bool {
	return info.GetHasState() && info.GetClusterId() == k.config.Identity().ClusterID && info.GetAppliedIndex() > index &&
		slices.Contains(info.GetKnown(), info.GetRaftId()) && !slices.Contains(info.GetKnown(), k.self)
}

// isRemoved reports whether a configuration that this node has applied does without it
// after one that had it. raft itself stops only a leader that is removed; a follower
// would wait for ever (R33). One that joins reads of the past first, in which it was
// no member yet.
func (k *Keeper) isRemoved() bool {
	members, _ := k.config.Roster.certain()
	switch {
	case has(members, k.self):
		k.member = true
		return false
	default:
		return k.member && len(members) > 0
	}
}
