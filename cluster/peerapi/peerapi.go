// Package peerapi answers the other nodes of the cluster.
package peerapi

import (
	"context"
	"errors"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/forward"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/peers"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/waiting"
)

// Config says who answers. All of it is required.
type Config struct {
	// IsMember reports whether a Raft id is that of a member.
	IsMember func(raftID string) bool
	// Relay takes a follower's operations.
	Relay forward.RelayConfig
	// Confirm returns an index that makes a read at it as fresh as the call.
	Confirm func(context.Context) (uint64, error)
	// Queues is what waits here at a key of a limit.
	Queues func(limit, key string) []queue.ClassState
	// Usage is what this node's answers granted and denied.
	Usage func(context.Context, *peerv1.UsageRequest) (*peerv1.UsageResponse, error)
	// Change makes one step of a change of the members, if this node leads.
	Change func(context.Context, *peerv1.ChangeRequest) *peerv1.ChangeResponse
	// Heard takes note of a member that asks who is there, Self is the answer.
	Heard func(*peerv1.PeerInfo)
	Self  func() *peerv1.PeerInfo
	// Promise answers a node that is about to form a cluster.
	Promise func(*peerv1.PromiseRequest) *peerv1.PromiseResponse
}

// Server answers the other nodes. Its listener has checked that they belong to
// this cluster.
type Server struct {
	peerv1.UnimplementedPeerServer
	config Config
}

// New returns a server.
func New(c Config) *Server { return &Server{config: c} }

// errStranger refuses a caller that may look for a cluster, and no more.
var errStranger = errors.New("the caller is not a member of this cluster")

// checkMember lets members only go on: nodes without a cluster may connect too,
// to probe and to promise (S1).
func (s *Server) checkMember(ctx context.Context) error {
	if !s.config.IsMember(peers.Caller(ctx).RaftID) {
		return errStranger
	}
	return nil
}

// Forward takes operations from a follower.
func (s *Server) Forward(stream peerv1.Peer_ForwardServer) error {
	if err := s.checkMember(stream.Context()); err != nil {
		return err
	}
	return forward.Serve(stream, s.config.Relay)
}

// ReadIndex returns an index that makes a read at it as fresh as the call.
func (s *Server) ReadIndex(ctx context.Context, _ *peerv1.ReadIndexRequest) (*peerv1.ReadIndexResponse, error) {
	if err := s.checkMember(ctx); err != nil {
		return nil, err
	}
	index, err := s.config.Confirm(ctx)
	if err != nil {
		return &peerv1.ReadIndexResponse{Failure: outcome.FailureOf(err)}, nil
	}
	return &peerv1.ReadIndexResponse{Index: index}, nil
}

// Queues shows what waits here.
func (s *Server) Queues(ctx context.Context, request *peerv1.QueuesRequest) (*peerv1.QueuesResponse, error) {
	if err := s.checkMember(ctx); err != nil {
		return nil, err
	}
	return &peerv1.QueuesResponse{
		Classes: waiting.Shown(s.config.Queues(request.GetLimit(), request.GetKey())),
	}, nil
}

// Usage shows what this node's answers granted and denied.
func (s *Server) Usage(ctx context.Context, request *peerv1.UsageRequest) (*peerv1.UsageResponse, error) {
	if err := s.checkMember(ctx); err != nil {
		return nil, err
	}
	return s.config.Usage(ctx, request)
}

// Change makes one step of a change of the members, if this node leads.
func (s *Server) Change(ctx context.Context, request *peerv1.ChangeRequest) (*peerv1.ChangeResponse, error) {
	if err := s.checkMember(ctx); err != nil {
		return nil, err
	}
	return s.config.Change(ctx, request), nil
}

// Probe answers a peer that asks who is there. Only a member is heard, and only of
// itself: by what members say the wall clock goes, and they must find room.
func (s *Server) Probe(ctx context.Context, request *peerv1.ProbeRequest) (*peerv1.ProbeResponse, error) {
	from := request.GetFrom()
	if id := from.GetRaftId(); id == peers.Caller(ctx).RaftID && s.config.IsMember(id) {
		s.config.Heard(from)
	}
	return &peerv1.ProbeResponse{Self: s.config.Self()}, nil
}

// Promise answers a node that is about to form a cluster.
func (s *Server) Promise(_ context.Context, request *peerv1.PromiseRequest) (*peerv1.PromiseResponse, error) {
	return s.config.Promise(request), nil
}
