package cluster

import (
	"fmt"

	"google.golang.org/grpc"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/forward"
	"github.com/quorlease/quorlease/cluster/peerapi"
	"github.com/quorlease/quorlease/cluster/peers"
	"github.com/quorlease/quorlease/cluster/wire"
)

// self is what this node says of itself in handshakes.
func (n *Node) self() (clusterID, raftID string) {
	r := n.identity.Record()
	return r.ClusterID, r.RaftID()
}

// admitPeer decides who may talk to this node; the handshake has refused other
// clusters before. raft checks nothing itself (R38): only members of its
// configuration may speak raft, and before there is one those with whom this
// node has promised to form a cluster. gRPC is open to nodes without a cluster
// too, which look for one, and at a node that joins to all of its cluster: whoever
// leads may be newer than what it has read of.
func (n *Node) admitPeer(kind wire.Kind, clusterID, raftID string) error {
	if !n.roster.Attached() {
		return fmt.Errorf("%s %w", n.id, wire.ErrStarting)
	}
	if kind == wire.GRPC && clusterID == "" {
		return nil
	}
	if n.roster.IsMember(raftID) {
		return nil
	}
	if kind == wire.GRPC && n.roster.Joins(string(n.id)) {
		return nil
	}
	return fmt.Errorf("%s %w of cluster %s", raftID, wire.ErrUnknownNode, n.identity.Record().ClusterID)
}

// record is what clients need to find this node.
func (n *Node) record() *logv1.NodeRecord {
	return &logv1.NodeRecord{
		RaftId: string(n.id), Name: n.config.ID, Peer: n.advertise,
		Grpc: n.config.AdvertiseGRPC, Http: n.config.AdvertiseHTTP, Version: n.config.Version,
	}
}

// openServer answers the other nodes' gRPC.
func (n *Node) openServer() error {
	n.server = grpc.NewServer(
		grpc.Creds(peers.Credentials()),
		grpc.MaxRecvMsgSize(peers.MessageMax), grpc.MaxSendMsgSize(peers.MessageMax),
		grpc.MaxConcurrentStreams(peerStreamsMax), grpc.WaitForHandlers(true),
	)
	peerv1.RegisterPeerServer(n.server, peerapi.New(peerapi.Config{
		IsMember: n.roster.IsMember, Change: n.changer.Here,
		Confirm: n.reads.Confirm, Queues: n.waiting.State, Usage: n.usage.Own,
		Heard: n.prober.Heard, Self: n.info, Promise: n.former.Promise,
		Relay: forward.RelayConfig{
			Submit: n.enter, Cancel: n.door.Cancel, Strand: n.strand, AnswersMax: 2 * n.config.MaxPending,
		},
	}))
	n.loops.Go(func() { _ = n.server.Serve(n.listener.GRPC()) })
	return nil
}

// strand ends an item whose node can't be reached any more.
func (n *Node) strand(it *door.Item) {
	n.waiting.Strand(it)
	n.door.Cancel(it)
}

// peerStreamsMax bounds what one peer may ask at a time: probes, reads and one
// stream of operations.
const peerStreamsMax = 256
