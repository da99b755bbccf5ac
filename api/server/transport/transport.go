// Package transport bounds what callers can make a gRPC server hold before a call is
// theirs: connections, headers, messages, buffers.
package transport

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// MessageMax bounds one received message, in bytes: the largest limits file fits.
	MessageMax = 512 << 10
	// streamsPerConnection bounds one connection.
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
	// workers take calls one after the other, with stacks that have grown: a new goroutine
	// for each call spends a fifth of a call on growing its own. Calls beyond them, and beside
	// those that wait or go on, have a goroutine of their own.
	workers = 64
)

// Options are the bounds as options of the server.
func Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MessageMax),
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
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(workers),
	}
}
