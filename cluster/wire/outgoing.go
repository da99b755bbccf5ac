package wire

import (
	"context"
	"net"
	"sync"
)

// Outgoing keeps hold of every connection this node dialled, so that stopping
// does not have to wait for a silent peer: raft holds on to a connection while
// it waits for an answer, and can't be interrupted while it dials (R40).
type Outgoing struct {
	inner  Network
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	conns map[*outConn]struct{}
}

// NewOutgoing returns one that dials with inner; nothing there: TCP.
func NewOutgoing(inner Network) *Outgoing {
	if inner.Dial == nil {
		inner.Dial = TCP().Dial
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Outgoing{inner: inner, ctx: ctx, cancel: cancel, conns: make(map[*outConn]struct{})}
}

// Network is the network to dial with.
func (o *Outgoing) Network() Network {
	return Network{Listen: o.inner.Listen, Dial: o.dial}
}

func (o *Outgoing) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	conn, err := o.inner.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &outConn{Conn: conn, owner: o}
	o.mu.Lock()
	over := o.ctx.Err() != nil
	if !over {
		o.conns[c] = struct{}{}
	}
	o.mu.Unlock()
	if over {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close ends every connection and every attempt at one.
func (o *Outgoing) Close() {
	o.mu.Lock()
	o.cancel()
	conns := make([]*outConn, 0, len(o.conns))
	for c := range o.conns {
		conns = append(conns, c)
	}
	o.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// outConn is a connection that Outgoing can close.
type outConn struct {
	net.Conn
	owner *Outgoing
}

// Close implements net.Conn.
func (c *outConn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.conns, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// NetConn is the connection underneath.
func (c *outConn) NetConn() net.Conn { return c.Conn }
