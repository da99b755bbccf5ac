package server_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorlease/quorlease/api/codec"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
)

// BenchmarkUnary is what the server itself adds to a unary acquire, client and
// loopback included: the node decides at once.
func BenchmarkUnary(b *testing.B) {
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
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
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
	// As a client that has had its first answer.
	revision := node.Revision()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		admission := quorleasev1.NewAdmissionClient(conn)
		request := acquireItem(1, "free").GetAcquire()
		request.KnownRevision = &revision
		for p.Next() {
			if _, err := admission.Acquire(context.Background(), request); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
