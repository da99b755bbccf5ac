package clustertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/quorlease/quorlease/cluster/wire"
)

// Board carries what nodes say to one another and can cut any pair of them off.
// While a pair is cut, its connections are gone and dialling hangs until the
// dialler gives up, as it does where packets are dropped. Safe for concurrent
// use.
type Board struct {
	// base opens real connections. Nil: everything stays in memory.
	base *wire.Network

	mu        sync.Mutex
	listeners map[string]*pipeListener
	// owners are nodes by the address they listen on.
	owners map[string]string
	cut    map[pair]bool
	// ended are nodes whose process has ended.
	ended map[string]bool
	conns map[pair]map[net.Conn]struct{}
}

// pair is two nodes in order of their names.
type pair struct{ a, b string }

func pairOf(a, b string) pair {
	if a > b {
		a, b = b, a
	}
	return pair{a, b}
}

// NewBoard returns a board over TCP on loopback, or in memory.
func NewBoard(inMemory bool) *Board {
	b := &Board{
		listeners: make(map[string]*pipeListener),
		owners:    make(map[string]string),
		cut:       make(map[pair]bool),
		ended:     make(map[string]bool),
		conns:     make(map[pair]map[net.Conn]struct{}),
	}
	if !inMemory {
		tcp := wire.TCP()
		b.base = &tcp
	}
	return b
}

// For is the network as the node called name sees it.
func (b *Board) For(name string) wire.Network {
	return wire.Network{
		Listen: func(ctx context.Context, address string) (net.Listener, error) {
			return b.listen(ctx, name, address)
		},
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return b.dial(ctx, name, address)
		},
	}
}

// Cut separates two nodes.
func (b *Board) Cut(x, y string) {
	p := pairOf(x, y)
	b.mu.Lock()
	b.cut[p] = true
	conns := b.conns[p]
	b.conns[p] = nil
	b.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
}

// Heal joins two nodes again.
func (b *Board) Heal(x, y string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.cut, pairOf(x, y))
}

// End is what the others see when a node's process ends: its connections end, and its
// address refuses new ones, until it listens again.
func (b *Board) End(name string) {
	b.mu.Lock()
	b.ended[name] = true
	var ended []net.Conn
	for p, conns := range b.conns {
		if p.a == name || p.b == name {
			ended = slices.AppendSeq(ended, maps.Keys(conns))
			delete(b.conns, p)
		}
	}
	b.mu.Unlock()
	for _, c := range ended {
		_ = c.Close()
	}
}

func (b *Board) listen(ctx context.Context, name, address string) (net.Listener, error) {
	var l net.Listener
	if b.base != nil {
		var err error
		if l, err = b.base.Listen(ctx, address); err != nil {
			return nil, err
		}
	} else {
		l = &pipeListener{board: b, address: address, conns: make(chan net.Conn), shut: make(chan struct{})}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if pipes, ok := l.(*pipeListener); ok {
		if b.listeners[address] != nil {
			return nil, fmt.Errorf("address %s is in use", address)
		}
		b.listeners[address] = pipes
	}
	b.owners[l.Addr().String()] = name
	delete(b.ended, name)
	return l, nil
}

func (b *Board) dial(ctx context.Context, name, address string) (net.Conn, error) {
	b.mu.Lock()
	p := pairOf(name, b.owners[address])
	cut, ended := b.cut[p], b.ended[name] || b.ended[b.owners[address]]
	listener := b.listeners[address]
	b.mu.Unlock()
	switch {
	case ended:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	case cut:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var conn net.Conn
	var err error
	switch {
	case b.base != nil:
		conn, err = b.base.Dial(ctx, address)
	case listener == nil:
		err = fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	default:
		conn, err = listener.dial(ctx)
	}
	if err != nil {
		return nil, err
	}
	return b.track(p, conn)
}

// track notes a connection, unless its nodes were cut off meanwhile.
func (b *Board) track(p pair, conn net.Conn) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut[p] {
		return nil, errors.Join(errCut, conn.Close())
	}
	if b.ended[p.a] || b.ended[p.b] {
		return nil, errors.Join(syscall.ECONNREFUSED, conn.Close())
	}
	if b.conns[p] == nil {
		b.conns[p] = make(map[net.Conn]struct{})
	}
	t := &tracked{Conn: conn, board: b, pair: p}
	b.conns[p][t] = struct{}{}
	return t, nil
}

var errCut = errors.New("cut off")

// tracked is a connection that the board can close.
type tracked struct {
	net.Conn
	board *Board
	pair  pair
}

// Close implements net.Conn.
func (t *tracked) Close() error {
	t.board.mu.Lock()
	delete(t.board.conns[t.pair], t)
	t.board.mu.Unlock()
	return t.Conn.Close()
}

// NetConn is the connection underneath.
func (t *tracked) NetConn() net.Conn { return t.Conn }

// pipeListener accepts connections in memory.
type pipeListener struct {
	board   *Board
	address string
	conns   chan net.Conn
	shut    chan struct{}
	once    sync.Once
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.shut:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.shut:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() {
		close(l.shut)
		l.board.mu.Lock()
		defer l.board.mu.Unlock()
		if l.board.listeners[l.address] == l {
			delete(l.board.listeners, l.address)
		}
	})
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return pipeAddr(l.address) }

type pipeAddr string

// Network implements net.Addr.
func (pipeAddr) Network() string { return "pipe" }

// String implements net.Addr.
func (a pipeAddr) String() string { return string(a) }
