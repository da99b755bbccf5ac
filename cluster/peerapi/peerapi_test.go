package peerapi_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc/peer"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/peerapi"
	"github.com/quorlease/quorlease/cluster/peers"
	"github.com/quorlease/quorlease/cluster/wire"
)

// conn is a connection whose other end has shaken hands.
type conn struct {
	net.Conn
	peer wire.Peer
}

func (c conn) Peer() wire.Peer { return c.peer }

// calledBy is the context of a call by the node raftID.
func calledBy(t *testing.T, raftID string) context.Context {
	t.Helper()
	_, who, err := peers.Credentials().ServerHandshake(conn{peer: wire.Peer{Kind: wire.GRPC, RaftID: raftID}})
	if err != nil {
		t.Fatal(err)
	}
	return peer.NewContext(t.Context(), &peer.Peer{AuthInfo: who})
}

// Only a member is heard, and only of itself: what it says of its wall clock moves the
// cluster's (T6), and what is kept of it takes room (G10). Whoever asks is answered.
func TestT6OnlyMembersAreHeard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, caller, from string
		heard              bool
	}{
		{"a member of itself", "b.00000001", "b.00000001", true},
		{"a member of another one", "b.00000001", "c.00000002", false},
		{"a stranger of itself", "x.00000009", "x.00000009", false},
		{"a stranger of a member", "x.00000009", "b.00000001", false},
		{"nobody", "", "b.00000001", false},
		{"somebody of nobody", "b.00000001", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			heard := false
			s := peerapi.New(peerapi.Config{
				IsMember: func(id string) bool { return id == "b.00000001" || id == "c.00000002" },
				Heard:    func(*peerv1.PeerInfo) { heard = true },
				Self:     func() *peerv1.PeerInfo { return &peerv1.PeerInfo{RaftId: "a.00000000"} },
			})
			response, err := s.Probe(calledBy(t, c.caller), &peerv1.ProbeRequest{From: &peerv1.PeerInfo{RaftId: c.from}})
			if err != nil || response.GetSelf().GetRaftId() != "a.00000000" {
				t.Errorf("answered %v, %v", response, err)
			}
			if heard != c.heard {
				t.Errorf("heard %v, want %v", heard, c.heard)
			}
		})
	}
}
