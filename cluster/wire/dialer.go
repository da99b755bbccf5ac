package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
)

// handshakeTimeout is the default bound on a handshake at either end.
const handshakeTimeout = 5 * time.Second

// DialerConfig configures a Dialer.
type DialerConfig struct {
	// Network opens the connections. Zero: TCP.
	Network Network
	// Self is this node's cluster id (empty: none yet) and Raft id, asked for
	// each handshake. Required.
	Self func() (clusterID, raftID string)
	// Expect is the Raft id that must answer at an address, empty where any
	// may. A recycled address is then never taken for the node that had it
	// (R35). Nil: any.
	Expect func(addr string) string
	// Timeout bounds connecting and the handshake together. Default 5 s.
	Timeout time.Duration
	// Limits bound Raft connections.
	Limits Limits
	// OnFailure hears why an address could not be connected to. It must not block. Nil:
	// nobody does.
	OnFailure func(addr string, err error)
	// Logger hears of refusals, once an address a minute. Nil: nobody does.
	Logger hclog.Logger
}

// Dialer opens connections to peers. It is safe for concurrent use and holds
// nothing open itself.
type Dialer struct {
	config DialerConfig
	quiet  quiet
}

// NewDialer returns a dialer.
func NewDialer(c DialerConfig) *Dialer {
	if c.Network.Dial == nil {
		c.Network.Dial = TCP().Dial
	}
	if c.Timeout <= 0 {
		c.Timeout = handshakeTimeout
	}
	if c.OnFailure == nil {
		c.OnFailure = func(string, error) {}
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return &Dialer{config: c}
}

// DialRaft opens a connection for Raft's transport, with limits. A timeout of
// zero or above the dialer's own means the dialer's own.
func (d *Dialer) DialRaft(addr string, timeout time.Duration) (net.Conn, error) {
	if timeout <= 0 || timeout > d.config.Timeout {
		timeout = d.config.Timeout
	}
	conn, err := d.dialRaftBy(addr, time.Now().Add(timeout))
	if err != nil {
		return nil, err
	}
	redial := func(deadline time.Time) (net.Conn, error) {
		return d.dialRaftBy(addr, earlier(time.Now().Add(d.config.Timeout), deadline))
	}
	return limit(conn, d.config.Limits, true, redial), nil
}

func (d *Dialer) dialRaftBy(addr string, deadline time.Time) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	conn, _, err := d.Dial(ctx, Raft, addr)
	return conn, err
}

// DialGRPC opens a connection for a gRPC client; it fits
// grpc.WithContextDialer.
func (d *Dialer) DialGRPC(ctx context.Context, addr string) (net.Conn, error) {
	conn, _, err := d.Dial(ctx, GRPC, addr)
	return conn, err
}

// Dial connects, shakes hands, and says who answered. A refusal by the other
// end is a *Refusal; another cluster or node than expected is ErrOtherCluster
// or ErrOtherNode. Nothing beyond the handshake has been sent then.
func (d *Dialer) Dial(ctx context.Context, kind Kind, addr string) (net.Conn, Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()
	conn, err := d.config.Network.Dial(ctx, addr)
	if err != nil {
		d.config.OnFailure(addr, err)
		return nil, Peer{}, fmt.Errorf("dial peer %s: %w", addr, err)
	}
	peer, err := d.shake(ctx, conn, kind, addr)
	if err != nil {
		_ = conn.Close()
		if !errors.Is(err, ErrStarting) && d.quiet.allows(time.Now(), addr) {
			d.config.Logger.Warn("peer handshake failed", "peer", addr, "kind", kind.String(), "err", err)
		}
		return nil, peer, fmt.Errorf("shake hands with peer %s: %w", addr, err)
	}
	return conn, peer, nil
}

func (d *Dialer) shake(ctx context.Context, conn net.Conn, kind Kind, addr string) (Peer, error) {
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	clusterID, raftID := d.config.Self()
	if _, err := conn.Write(encodeHello(Peer{Kind: kind, ClusterID: clusterID, RaftID: raftID})); err != nil {
		stop()
		return Peer{}, err
	}
	peer, err := readAnswer(conn, kind)
	if !stop() && err == nil {
		return Peer{}, context.Cause(ctx)
	}
	if err != nil {
		return peer, noEOF(err)
	}
	if clusterID != "" && peer.ClusterID != "" && clusterID != peer.ClusterID {
		return peer, fmt.Errorf("%s %w: %s, this node to %s", peer.RaftID, ErrOtherCluster, peer.ClusterID, clusterID)
	}
	if d.config.Expect != nil {
		if want := d.config.Expect(addr); want != "" && want != peer.RaftID {
			return peer, fmt.Errorf("%w: %s instead of %s", ErrOtherNode, peer.RaftID, want)
		}
	}
	return peer, conn.SetDeadline(time.Time{})
}
