package cluster

import (
	"errors"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster/wire"
)

const (
	// raftPool is how many idle connections to a peer raft keeps.
	raftPool = 3
	// raftTimeout bounds one message between peers, but for snapshots.
	raftTimeout = 10 * time.Second
)

// streamLayer is raft's view of the peer listener. Addr is the advertised
// address: raft writes it into the configuration and into votes (R35).
type streamLayer struct {
	net.Listener
	dialer    *wire.Dialer
	advertise address
}

// address is an advertised address; a host name stays a name.
type address string

// Network implements net.Addr.
func (a address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// Addr implements net.Listener.
func (s *streamLayer) Addr() net.Addr { return s.advertise }

// Dial implements raft.StreamLayer.
func (s *streamLayer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.dialer.DialRaft(string(to), timeout)
}

// newTransport returns raft's transport over the peer listener. One message in
// flight switches pipelining off: its sender and reader can block on each other
// for good (R13).
func newTransport(layer *streamLayer, logger hclog.Logger) (*raft.NetworkTransport, error) {
	t := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:          layer,
		MaxPool:         raftPool,
		MaxRPCsInFlight: 1,
		Timeout:         raftTimeout,
		Logger:          logger,
	})
	// Without this a node that was cut off disturbs the others when it returns,
	// and raft says so in a warning only (R11).
	if _, ok := any(t).(raft.WithPreVote); !ok {
		return nil, errors.Join(errors.New("raft's transport has lost pre-vote"), t.Close())
	}
	return t, nil
}

// raftConfig translates the node's configuration.
func raftConfig(c Config, id raft.ServerID, logger hclog.Logger) *raft.Config {
	scale := time.Duration(c.RaftMultiplier)
	rc := raft.DefaultConfig()
	rc.LocalID = id
	rc.HeartbeatTimeout = 500 * time.Millisecond * scale
	rc.ElectionTimeout = 500 * time.Millisecond * scale
	rc.LeaderLeaseTimeout = 250 * time.Millisecond * scale
	rc.CommitTimeout = 20 * time.Millisecond
	// With entries of a few KiB, 64 KiB at most, a message stays near 1 MiB, and
	// in the worst case of a long catch-up within what a peer accepts (R28).
	rc.MaxAppendEntries = 128
	rc.ShutdownOnRemove = true
	rc.SnapshotThreshold = c.SnapshotThreshold
	rc.SnapshotInterval = snapshotCheck
	rc.TrailingLogs = c.TrailingLogs
	rc.NoLegacyTelemetry = true
	rc.Logger = logger
	return rc
}

// snapshotCheck is how often raft looks whether a snapshot is due. Short, so
// that one compaction deletes few entries and holds up the log briefly (R15).
const snapshotCheck = 10 * time.Second
