package form

import (
	"context"
	"errors"
	"fmt"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
)

// Promise answers another node's plan. It is safe for concurrent use, and on
// disk before it says yes. Repeating a plan gets the same answer.
func (f *Former) Promise(req *peerv1.PromiseRequest) *peerv1.PromiseResponse {
	if err := f.promise(req); err != nil {
		return &peerv1.PromiseResponse{Reason: err.Error()}
	}
	return &peerv1.PromiseResponse{Accepted: true}
}

func (f *Former) promise(req *peerv1.PromiseRequest) error {
	r := f.config.Identity.Record()
	members := make([]identity.Member, 0, len(req.GetMembers()))
	for _, m := range req.GetMembers() {
		members = append(members, identity.Member{RaftID: m.GetRaftId(), Peer: m.GetPeer()})
		if m.GetRaftId() == r.RaftID() && m.GetPeer() != f.config.Peer {
			return fmt.Errorf("the plan has %s at %s, it advertises %s", r.RaftID(), m.GetPeer(), f.config.Peer)
		}
	}
	// Only an empty node can say yes to something new.
	if r.ClusterID == "" {
		switch n := len(members); {
		case f.config.HasState():
			return fmt.Errorf("%s has Raft state already", r.RaftID())
		case n != f.config.Expect:
			return fmt.Errorf("%s was started with --bootstrap-expect %d, the plan has %d members",
				r.RaftID(), f.config.Expect, n)
		}
	}
	return f.config.Identity.Promise(req.GetClusterId(), members)
}

// bootstrap carries out the plan of d. A plan that is new is written down
// first, so that after a crash the same cluster is formed and no other.
func (f *Former) bootstrap(ctx context.Context, d decision) (Outcome, bool, error) {
	if d.clusterID == "" {
		d.clusterID = f.config.Draw()
		err := f.config.Identity.Promise(d.clusterID, d.members)
		if errors.Is(err, identity.ErrOtherCluster) {
			// Another plan was faster, and this node has promised it.
			f.say(err.Error())
			return Outcome{}, false, nil
		}
		if err != nil {
			return Outcome{}, false, fmt.Errorf("write down the plan of cluster %s: %w", d.clusterID, err)
		}
		f.config.Logger.Info("cluster planned", "cluster", d.clusterID, "count", len(d.members))
	}
	for _, m := range d.members {
		if m.RaftID == f.config.Identity.Record().RaftID() {
			continue
		}
		if err := f.collect(ctx, d, m); err != nil {
			f.say(fmt.Sprintf("%s has not promised cluster %s: %v", m.RaftID, d.clusterID, err))
			return Outcome{}, false, nil
		}
	}
	if err := f.config.Bootstrap(ctx, d.clusterID, d.members); err != nil {
		return Outcome{}, false, fmt.Errorf("bootstrap cluster %s: %w", d.clusterID, err)
	}
	if err := f.config.Identity.Form(d.clusterID); err != nil {
		return Outcome{}, false, fmt.Errorf("note that cluster %s exists: %w", d.clusterID, err)
	}
	f.config.Logger.Info("cluster formed", "cluster", d.clusterID, "count", len(d.members))
	return Outcome{ClusterID: d.clusterID, Bootstrapped: true}, true, nil
}

// collect gets one member's promise. That it was that member who gave it is
// asked for: an address may have changed hands, and a cluster with a member
// that never promised could share it with another.
func (f *Former) collect(ctx context.Context, d decision, m identity.Member) error {
	ctx, cancel := context.WithTimeout(ctx, 2*f.config.Timeout)
	defer cancel()
	req := &peerv1.PromiseRequest{ClusterId: d.clusterID}
	for _, member := range d.members {
		req.Members = append(req.Members, &peerv1.Member{RaftId: member.RaftID, Peer: member.Peer})
	}
	resp, err := f.config.Promise(ctx, m.Peer, req)
	if err != nil {
		return err
	}
	if !resp.GetAccepted() {
		return fmt.Errorf("%.300q", resp.GetReason())
	}
	info, err := f.config.Probe(ctx, m.Peer)
	if err != nil {
		return err
	}
	if info.GetRaftId() != m.RaftID || info.GetClusterId() != d.clusterID {
		return fmt.Errorf("%s of cluster %q answers at %s", info.GetRaftId(), info.GetClusterId(), m.Peer)
	}
	return nil
}
