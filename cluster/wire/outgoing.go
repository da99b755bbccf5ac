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
	inner Network

	mu struct {
		sync.Mutex
		closed bool
		conns  map[*outConn]struct{}
		// dials cancel the attempts under way.
		dials map[*context.CancelFunc]struct{}
	}
}

// NewOutgoing returns one that dials with inner; nothing there: TCP.
func NewOutgoing(inner Network) *Outgoing {
	if inner.Dial == nil {
		inner.Dial = TCP().Dial
	}
	o := &Outgoing{inner: inner}
	o.mu.conns = make(map[*outConn]struct{})
	o.mu.dials = make(map[*context.CancelFunc]struct{})
	return o
}

// Network is the network to dial with.
func (o *Outgoing) Network() Network {
	return Network{Listen: o.inner.Listen, Dial: o.dial}
}

func (o *Outgoing) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !o.begin(&cancel) {
		return nil, net.ErrClosed
	}
	conn, err := o.inner.Dial(ctx, address)
	return o.end(&cancel, conn, err)
}

// begin notes an attempt to connect.
func (o *Outgoing) begin(cancel *context.CancelFunc) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.mu.closed {
		o.mu.dials[cancel] = struct{}{}
	}
	return !o.mu.closed
}

// end turns an attempt into a connection.
func (o *Outgoing) end(cancel *context.CancelFunc, conn net.Conn, err error) (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.mu.dials, cancel)
	if err != nil {
		return nil, err
	}
	if o.mu.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	c := &outConn{Conn: conn, owner: o}
	o.mu.conns[c] = struct{}{}
	return c, nil
}

// Close ends every connection and every attempt at one.
func (o *Outgoing) Close() {
	o.mu.Lock()
	o.mu.closed = true
	for cancel := range o.mu.dials {
		(*cancel)()
	}
	conns := make([]*outConn, 0, len(o.mu.conns))
	for c := range o.mu.conns {
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
	delete(c.owner.mu.conns, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// NetConn is the connection underneath.
func (c *outConn) NetConn() net.Conn { return c.Conn }
