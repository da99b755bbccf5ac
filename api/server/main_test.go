package server_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/cluster"
)

// The real node is one.
var (
	_ server.Admitter = (*cluster.Node)(nil)
	_ server.Node     = (*cluster.Node)(nil)
	_ server.Node     = (*servertest.Node)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves a fresh node on a loopback port until the test ends.
func start(t *testing.T, change func(*server.Config)) (*servertest.Node, *server.Server, string) {
	t.Helper()
	node := servertest.New()
	config := server.DefaultConfig()
	config.Node, config.Events = node, node.Ring
	config.DrainMax = 200 * time.Millisecond
	if change != nil {
		change(&config)
	}
	s, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		serving.Wait()
		node.Ring.Close()
	})
	return node, s, l.Addr().String()
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// patient is a context that ends the test rather than hang it.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// configure applies one limit of ten a minute with a burst of ten, called name.
func configure(t *testing.T, conn *grpc.ClientConn, name string, change func(*quorleasev1.Limit)) {
	t.Helper()
	burst := int64(10)
	l := &quorleasev1.Limit{Name: name, Dimensions: []*quorleasev1.Dimension{{
		Name:  "requests",
		Rate:  &quorleasev1.Rate{Amount: 10, Interval: durationpb.New(time.Minute)},
		Burst: &burst,
	}}}
	if change != nil {
		change(l)
	}
	_, err := quorleasev1.NewLimitsClient(conn).Apply(patient(t),
		&quorleasev1.LimitsApplyRequest{Limits: []*quorleasev1.Limit{l}})
	if err != nil {
		t.Fatal(err)
	}
}

func charge(limit string, n int64) []*quorleasev1.Charge {
	return []*quorleasev1.Charge{{Limit: limit, Dimension: "requests", Amount: n}}
}

const leaseID = "00112233445566778899aabbccddeeff"
