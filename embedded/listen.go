package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/peer"

	"github.com/quorlease/quorlease/api/httpapi"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster/wire"
)

// Names of what nobody can dial. They have the form of addresses, since members are told of by
// address.
const (
	peerAddress   = "localhost:1"
	insideAddress = "embedded:1"
)

// errAlone is what dialling another node ends with.
var errAlone = errors.New("an embedded authority has no other nodes")

// alone is the network of a node that has no others: nobody comes, and nobody can be dialled.
func alone() wire.Network {
	return wire.Network{
		Listen: func(context.Context, string) (net.Listener, error) { return &silence{over: make(chan struct{})}, nil },
		Dial:   func(context.Context, string) (net.Conn, error) { return nil, errAlone },
	}
}

// silence is a listener that nobody can reach.
type silence struct {
	over chan struct{}
	once sync.Once
}

// Accept implements net.Listener: it waits for Close.
func (s *silence) Accept() (net.Conn, error) {
	<-s.over
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (s *silence) Close() error {
	s.once.Do(func() { close(s.over) })
	return nil
}

// Addr implements net.Listener.
func (s *silence) Addr() net.Addr { return place(peerAddress) }

// place is an address in this process.
type place string

// Network implements net.Addr.
func (place) Network() string { return "embedded" }

// String implements net.Addr.
func (p place) String() string { return string(p) }

// listen takes the ports, where there are any, before the directory is touched.
func (a *Authority) listen(ctx context.Context) (err error) {
	if a.outside, err = loopback(ctx, "listen", a.config.Listen); err != nil {
		return err
	}
	if a.page, err = loopback(ctx, "http", a.config.HTTP); err != nil {
		return err
	}
	a.address = name(a.outside)
	return nil
}

// loopback listens where this machine alone can ask. Nil: nowhere.
func loopback(ctx context.Context, field, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // nobody may ask
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s: %s is not on loopback", field, address), l.Close())
	}
	return l, nil
}

func addr(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// name is the address of a listener, or what stands for none.
func name(l net.Listener) string {
	if l == nil {
		return insideAddress
	}
	return addr(l)
}

// identify lets in who is in this process, and who is on this machine.
func identify(p *peer.Peer) (server.Identity, error) {
	switch p.Addr.Network() {
	case "bufconn", place("").Network():
		return server.Identity{Role: server.Operator}, nil
	}
	return server.Loopback(p)
}

// serve begins to answer.
func (a *Authority) serve() error {
	config := server.DefaultConfig()
	config.Node, config.Events, config.Logger = a.node, a.node.Events(), a.config.Logger
	config.Identify = identify
	var err error
	if a.api, err = server.New(config); err != nil {
		return err
	}
	a.joined.Go(func() { _ = a.api.Serve(a.inside) })
	if a.outside != nil {
		a.joined.Go(func() { _ = a.api.Serve(a.outside) })
	}
	if a.page == nil {
		return nil
	}
	over := httpapi.DefaultConfig()
	over.API, over.Gatherer, over.Logger = a.api, a.registry, a.config.Logger
	if a.http, err = httpapi.New(over); err != nil {
		return err
	}
	a.joined.Go(func() { _ = a.http.Serve(a.page) })
	return nil
}
