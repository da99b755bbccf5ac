package server

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/tap"

	"github.com/quorlease/quorlease/cluster"
)

// Bounds of what callers can make this process hold. A client that wants more
// than one message holds sends several.
const (
	// messageMax bounds one received message, in bytes: the largest limits file
	// fits. sessionMax and itemsMax bound one message of a session.
	messageMax = 512 << 10
	sessionMax = 256 << 10
	itemsMax   = 512
	// streamsPerConnection bounds one connection, and Config.StreamsMax all of
	// them together.
	streamsPerConnection = 250
	headersMax           = 16 << 10
	// handshakeMax is how long a connection may take to begin speaking HTTP/2.
	handshakeMax = 5 * time.Second
	// A connection on which nothing is open is closed after idleMax, one that
	// does not answer pings after pingEvery + pingMax.
	idleMax   = 5 * time.Minute
	pingEvery = time.Minute
	pingMax   = 10 * time.Second
	// clientPingMin is how often a client may ping.
	clientPingMin = 5 * time.Second
	// A connection's buffers: thousands of idle ones must not add up.
	readBuffer  = 16 << 10
	writeBuffer = 16 << 10
	// window is how much a client may send on a stream before it is read. It is
	// fixed: gRPC would otherwise let it grow to 16 MiB for a fast sender.
	window = 64 << 10
)

// bounds are the options of the gRPC server.
func (s *Server) bounds() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(messageMax),
		grpc.MaxConcurrentStreams(streamsPerConnection),
		grpc.MaxHeaderListSize(headersMax),
		grpc.ConnectionTimeout(handshakeMax),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: idleMax, Time: pingEvery, Timeout: pingMax,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: clientPingMin, PermitWithoutStream: true,
		}),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(16 * window),
		grpc.InTapHandle(s.tap),
		grpc.WaitForHandlers(true),
	}
}

var errOverloadedStreams = fmt.Errorf("%w: too many calls are open", cluster.ErrOverloaded)

// tap counts a call before anything is allocated for it; a call whose headers
// came and whose message does not come counts too.
func (s *Server) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if !s.begin() {
		return nil, ErrorOf(errOverloadedStreams)
	}
	context.AfterFunc(ctx, s.end)
	return ctx, nil
}

// begin counts one more open call, unless there are too many.
func (s *Server) begin() bool {
	if s.open.Add(1) > int64(s.config.StreamsMax) {
		s.open.Add(-1)
		return false
	}
	return true
}

func (s *Server) end() { s.open.Add(-1) }
