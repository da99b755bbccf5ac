package server_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
)

// BenchmarkSession is what the server itself adds to an acquire over a session
// with 128 items under way, client and loopback included: the node decides at
// once.
func BenchmarkSession(b *testing.B) {
	node := servertest.New()
	config := server.DefaultConfig()
	config.Node, config.Events = node, node.Ring
	s, err := server.New(config)
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	_, err = quorleasev1.NewLimitsClient(conn).Apply(context.Background(), &quorleasev1.LimitsApplyRequest{
		Limits: []*quorleasev1.Limit{{Name: "free", Unlimited: true}},
	})
	if err != nil {
		b.Fatal(err)
	}
	stream, err := quorleasev1.NewAdmissionClient(conn).Session(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	err = stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Hello{Hello: hello()}})
	if err != nil {
		b.Fatal(err)
	}
	// As a client that has had its first answer.
	revision := node.Revision()
	const batch = 64
	sent, received := 0, 0
	send := func(n int) {
		items := make([]*quorleasev1.RequestItem, n)
		for i := range items {
			items[i] = acquireItem(uint64(sent+i), "free")
			items[i].GetAcquire().KnownRevision = &revision
		}
		sent += n
		err := stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Items{
			Items: &quorleasev1.RequestItems{Items: items},
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	send(batch)
	send(batch)
	messages := 0
	for received < b.N {
		message, err := stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		messages++
		n := len(message.GetItems().GetItems())
		received += n
		send(n)
	}
	b.ReportMetric(float64(received)/float64(messages), "answers/message")
}
