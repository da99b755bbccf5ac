// Package peers keeps gRPC connections to the other nodes.
package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// MessageMax is what a node accepts in one message, in bytes: a change of limits
// with room for what travels with it.
const MessageMax = batch.MaxLimitsBytes + 256<<10

// Clients keeps one client a peer address.
type Clients struct {
	dial func(context.Context, string) (net.Conn, error)

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
	over  bool
}

// New returns an empty set. dial opens a connection for gRPC to an address.
func New(dial func(context.Context, string) (net.Conn, error)) *Clients {
	return &Clients{dial: dial, conns: make(map[string]*grpc.ClientConn)}
}

// Client returns the client for a peer address. It connects when it is used.
func (p *Clients) Client(address string) (peerv1.PeerClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, outcome.ErrClosed
	}
	if conn := p.conns[address]; conn != nil {
		return peerv1.NewPeerClient(conn), nil
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithContextDialer(p.dial),
		// The wire below authenticates; see cluster/wire.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MessageMax), grpc.MaxCallSendMsgSize(MessageMax)),
		// gRPC's own pauses, up to two minutes, suit strangers. A peer is back
		// within a second of its restart.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond,
			},
			MinConnectTimeout: time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to peer %s: %w", address, err)
	}
	p.conns[address] = conn
	return peerv1.NewPeerClient(conn), nil
}

// Close ends every connection.
func (p *Clients) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	var errs []error
	for _, conn := range p.conns {
		errs = append(errs, conn.Close())
	}
	p.conns = nil
	return errors.Join(errs...)
}
