package clienttest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

// conn is a client's end of a connection that can be frozen and cut.
type conn struct {
	net.Conn
	node   *node
	once   sync.Once
	closed chan struct{}
}

func (n *node) dial(ctx context.Context) (net.Conn, error) {
	c := n.cluster
	c.mu.Lock()
	n.counts.Dials++
	c.mu.Unlock()
	for {
		c.mu.Lock()
		refused, thawed, l := n.down || n.closed, n.thawed, n.listener
		if !refused && !n.frozen {
			c.mu.Unlock()
			return n.connect(ctx, l)
		}
		c.mu.Unlock()
		if refused {
			return nil, fmt.Errorf("dial %s: %w", n.address(), syscall.ECONNREFUSED)
		}
		select {
		case <-thawed:
		case <-ctx.Done():
			return nil, fmt.Errorf("dial %s: %w", n.address(), ctx.Err())
		}
	}
}

func (n *node) connect(ctx context.Context, l *bufconn.Listener) (net.Conn, error) {
	inner, err := l.DialContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", n.address(), err)
	}
	made := &conn{Conn: inner, node: n, closed: make(chan struct{})}
	n.cluster.mu.Lock()
	n.conns[made] = struct{}{}
	refused := n.down || n.closed
	n.cluster.mu.Unlock()
	if refused {
		_ = made.Close()
	}
	return made, nil
}

// cut closes every connection.
func (n *node) cut() {
	n.cluster.mu.Lock()
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.cluster.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

func (n *node) freezeLocked() {
	if !n.frozen {
		n.frozen, n.thawed = true, make(chan struct{})
	}
}

func (n *node) thawLocked() {
	if n.frozen {
		n.frozen = false
		close(n.thawed)
	}
}

// pass waits until bytes get through, or the connection is closed.
func (c *conn) pass() {
	c.node.cluster.mu.Lock()
	thawed := c.node.thawed
	c.node.cluster.mu.Unlock()
	select {
	case <-thawed:
	case <-c.closed:
	}
}

// Read delivers nothing while the node is frozen.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.pass()
	return n, err
}

// Write blocks while the node is frozen.
func (c *conn) Write(p []byte) (int, error) {
	c.pass()
	return c.Conn.Write(p)
}

// Close closes both ends.
func (c *conn) Close() error {
	var err error
	c.once.Do(func() {
		c.node.cluster.mu.Lock()
		delete(c.node.conns, c)
		c.node.cluster.mu.Unlock()
		close(c.closed)
		err = c.Conn.Close()
	})
	return err
}
