package peers

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/quorlease/quorlease/cluster/wire"
)

// errUnknown: the connection did not come through the wire's handshake.
var errUnknown = errors.New("the connection has no peer")

// Credentials makes a gRPC server know its callers: the handshake below has
// established who they are. It adds no protection of its own.
func Credentials() credentials.TransportCredentials { return handshaken{} }

// Caller is the node that makes the call with this context. The zero Peer: none.
func Caller(ctx context.Context) wire.Peer {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return wire.Peer{}
	}
	caller, _ := p.AuthInfo.(callerInfo)
	return caller.Peer
}

// callerInfo carries the peer to Caller.
type callerInfo struct {
	credentials.CommonAuthInfo
	wire.Peer
}

// AuthType implements credentials.AuthInfo.
func (callerInfo) AuthType() string { return "quorlease" }

// handshaken implements credentials.TransportCredentials.
type handshaken struct{}

// ServerHandshake finds out who called. Nothing is sent.
func (handshaken) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	known, ok := conn.(interface{ Peer() wire.Peer })
	if !ok {
		return nil, nil, errUnknown
	}
	info := callerInfo{Peer: known.Peer()}
	info.SecurityLevel = credentials.NoSecurity
	return conn, info, nil
}

// ClientHandshake is not for clients.
func (handshaken) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errUnknown
}

// Info implements credentials.TransportCredentials.
func (handshaken) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "quorlease"}
}

// Clone implements credentials.TransportCredentials.
func (c handshaken) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials.
func (handshaken) OverrideServerName(string) error { return nil }
