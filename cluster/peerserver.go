package cluster

import (
	"context"
	"errors"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/forward"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/peers"
)

// peerServer answers the other nodes. Its listener has checked that they belong
// to this cluster.
type peerServer struct {
	peerv1.UnimplementedPeerServer
	node *Node
}

// errStranger refuses a caller that may look for a cluster, and no more.
var errStranger = errors.New("the caller is not a member of this cluster")

// checkMember lets members only go on: nodes without a cluster may connect too,
// to probe and to promise (S1).
func (s *peerServer) checkMember(ctx context.Context) error {
	if !s.node.isMember(peers.Caller(ctx).RaftID) {
		return errStranger
	}
	return nil
}

// Forward takes operations from a follower.
func (s *peerServer) Forward(stream peerv1.Peer_ForwardServer) error {
	n := s.node
	if err := s.checkMember(stream.Context()); err != nil {
		return err
	}
	return forward.Serve(stream, forward.RelayConfig{
		Submit: n.enter, Cancel: n.door.Cancel, AnswersMax: 2 * n.config.MaxPending,
		Strand: func(it *door.Item) {
			n.waiting.Strand(it)
			n.door.Cancel(it)
		},
	})
}

// ReadIndex returns an index that makes a read at it as fresh as the call.
func (s *peerServer) ReadIndex(ctx context.Context, _ *peerv1.ReadIndexRequest) (*peerv1.ReadIndexResponse, error) {
	if err := s.checkMember(ctx); err != nil {
		return nil, err
	}
	index, err := s.node.reads.Confirm(ctx)
	if err != nil {
		return &peerv1.ReadIndexResponse{Failure: outcome.FailureOf(err)}, nil
	}
	return &peerv1.ReadIndexResponse{Index: index}, nil
}

// Probe answers a peer that asks who is there.
func (s *peerServer) Probe(_ context.Context, request *peerv1.ProbeRequest) (*peerv1.ProbeResponse, error) {
	if request.GetFrom() != nil {
		s.node.prober.Heard(request.GetFrom())
	}
	return &peerv1.ProbeResponse{Self: s.node.info()}, nil
}

// Promise answers a node that is about to form a cluster.
func (s *peerServer) Promise(_ context.Context, request *peerv1.PromiseRequest) (*peerv1.PromiseResponse, error) {
	return s.node.former.Promise(request), nil
}
