package session_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorlease/quorlease/api/codec"
	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/client/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = session.Hello{Client: "c", SessionID: "00112233445566778899aabbccddeeff"}

// dial connects to whatever serves l.
func dial(t testing.TB, l *bufconn.Listener) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// authority is a node in memory with a limit called free, which is unlimited.
func authority(t testing.TB) (*servertest.Node, *server.Server, *grpc.ClientConn) {
	t.Helper()
	node := servertest.New()
	limits, err := limitsfile.ResolveAll(&quorleasev1.LimitsApplyRequest{
		Limits: []*quorleasev1.Limit{{Name: "free", Unlimited: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	node.Apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: limits}})
	config := server.DefaultConfig()
	config.Node, config.Events, config.Identify = node, node.Ring, server.Anyone
	s, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1 << 16)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		_ = s.Close()
		serving.Wait()
		node.Ring.Close()
	})
	return node, s, dial(t, l)
}

func begin(t testing.TB, conn *grpc.ClientConn) *session.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := session.Open(ctx, conn, hello)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func acquire(limit string) *quorleasev1.RequestItem {
	return &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{
		Acquire: &quorleasev1.AcquireRequest{
			Charges: []*quorleasev1.Charge{{Limit: limit, Dimension: "requests", Amount: 1}},
		},
	}}
}

// script is a node whose sessions do what the test says.
type script struct {
	quorleasev1.UnimplementedAdmissionServer
	session func(grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse]) error
}

func (s *script) Session(
	stream grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse],
) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	return s.session(stream)
}

func scripted(
	t testing.TB, run func(grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse]) error,
) *grpc.ClientConn {
	t.Helper()
	g := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.WaitForHandlers(true))
	quorleasev1.RegisterAdmissionServer(g, &script{session: run})
	l := bufconn.Listen(1 << 16)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	t.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	return dial(t, l)
}

// echo grants everything at once, message by message.
func echo(stream grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse]) error {
	granted := &quorleasev1.ResponseItem_Acquire{Acquire: &quorleasev1.AcquireResponse{
		Decision: quorleasev1.Decision_GRANTED,
	}}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		asked := message.GetItems().GetItems()
		items := make([]*quorleasev1.ResponseItem, len(asked))
		for i, item := range asked {
			items[i] = &quorleasev1.ResponseItem{Seq: item.GetSeq(), Answer: granted}
		}
		if err := stream.Send(answers(items...)); err != nil {
			return err
		}
	}
}

func answers(items ...*quorleasev1.ResponseItem) *quorleasev1.SessionResponse {
	return &quorleasev1.SessionResponse{Kind: &quorleasev1.SessionResponse_Items{
		Items: &quorleasev1.ResponseItems{Items: items},
	}}
}

// bubble runs f where time moves only when nobody has anything to do.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}
