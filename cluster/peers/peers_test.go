package peers_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/peers"
	"github.com/quorlease/quorlease/cluster/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// namer says who called it.
type namer struct{ peerv1.UnimplementedPeerServer }

func (namer) Probe(ctx context.Context, _ *peerv1.ProbeRequest) (*peerv1.ProbeResponse, error) {
	return &peerv1.ProbeResponse{Self: &peerv1.PeerInfo{RaftId: peers.Caller(ctx).RaftID}}, nil
}

func TestS1ServerKnowsItsCaller(t *testing.T) {
	t.Parallel()
	listener, err := wire.Listen(t.Context(), wire.Config{
		Addr:  "127.0.0.1:0",
		Self:  func() (string, string) { return "", "server.00000000" },
		Admit: func(wire.Kind, string, string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(peers.Credentials()))
	peerv1.RegisterPeerServer(server, namer{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener.GRPC()) })
	dialer := wire.NewDialer(wire.DialerConfig{Self: func() (string, string) { return "", "client.11111111" }})
	clients := peers.New(dialer.DialGRPC)
	client, err := clients.Client(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Probe(t.Context(), &peerv1.ProbeRequest{})
	if err != nil || response.GetSelf().GetRaftId() != "client.11111111" {
		t.Errorf("got %v, %v", response, err)
	}
	if err := errors.Join(clients.Close(), listener.Close()); err != nil {
		t.Error(err)
	}
	server.Stop()
	serving.Wait()
	if _, err := clients.Client("127.0.0.1:1"); !errors.Is(err, outcome.ErrClosed) {
		t.Errorf("a client after Close: %v", err)
	}
	if caller := peers.Caller(t.Context()); caller != (wire.Peer{}) {
		t.Errorf("a caller out of nowhere: %v", caller)
	}
}

func TestServerRefusesOtherConnections(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer func() { _ = errors.Join(here.Close(), there.Close()) }()
	if _, _, err := peers.Credentials().ServerHandshake(here); err == nil {
		t.Error("a connection without a handshake was accepted")
	}
}
