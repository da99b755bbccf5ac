package bubble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"google.golang.org/grpc/test/bufconn"

	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
)

// pipeBytes is what a connection to a node holds that was not read yet.
const pipeBytes = 1 << 18

// served is a node as gateways reach it.
type served struct {
	server   *server.Server
	listener *bufconn.Listener
	serving  sync.WaitGroup

	mu struct {
		sync.Mutex
		// conns are by the gateway that opened them.
		conns  map[net.Conn]int
		closed bool
	}
}

func serve(node *cluster.Node) (*served, error) {
	config := server.DefaultConfig()
	config.Node, config.Events, config.Identify = node, node.Events(), server.Anyone
	api, err := server.New(config)
	if err != nil {
		return nil, fmt.Errorf("serve a node: %w", err)
	}
	s := &served{server: api, listener: bufconn.Listen(pipeBytes)}
	s.mu.conns = make(map[net.Conn]int)
	s.serving.Go(func() {
		// It ends when the server is closed, and has nothing else to say.
		_ = api.Serve(s.listener)
	})
	return s, nil
}

// dial connects a gateway.
func (s *served) dial(ctx context.Context, gateway int) (net.Conn, error) {
	inner, err := s.listener.DialContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial a node: %w", errors.Join(syscall.ECONNREFUSED, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, errors.Join(syscall.ECONNREFUSED, inner.Close())
	}
	c := &conn{Conn: inner, of: s}
	s.mu.conns[c] = gateway
	return c, nil
}

// cut ends the connections of a gateway, or all of them.
func (s *served) cut(gateway int) {
	s.mu.Lock()
	var ended []net.Conn
	for c, of := range s.mu.conns {
		if gateway == everybody || of == gateway {
			ended = append(ended, c)
		}
	}
	s.mu.Unlock()
	for _, c := range ended {
		_ = c.Close()
	}
}

const everybody = -1

// kill ends what gateways see of a node, without a word.
func (s *served) kill() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.cut(everybody)
}

// close waits for what is left of it.
func (s *served) close() error {
	s.kill()
	err := s.server.Close()
	s.serving.Wait()
	return err
}

// conn is a gateway's end of a connection.
type conn struct {
	net.Conn
	of *served
}

// Close closes both ends.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.mu.conns, net.Conn(c))
	c.of.mu.Unlock()
	return c.Conn.Close()
}
