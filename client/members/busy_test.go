package members_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/client/members"
)

// strange is a node that grants everything and answers for its status as the test
// says.
type strange struct {
	quorleasev1.UnimplementedAdmissionServer
	quorleasev1.UnimplementedClusterServer
	status func(context.Context) error
}

func (s *strange) Status(
	ctx context.Context, _ *quorleasev1.ClusterStatusRequest,
) (*quorleasev1.ClusterStatusResponse, error) {
	if err := s.status(ctx); err != nil {
		return nil, err
	}
	return &quorleasev1.ClusterStatusResponse{Leader: "n1"}, nil
}

func (s *strange) Session(
	stream grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse],
) error {
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, item := range message.GetItems().GetItems() {
			err := stream.Send(&quorleasev1.SessionResponse{Kind: &quorleasev1.SessionResponse_Items{
				Items: &quorleasev1.ResponseItems{Items: []*quorleasev1.ResponseItem{{Seq: item.GetSeq()}}},
			}})
			if err != nil {
				return err
			}
		}
	}
}

// meet is Members of one strange node.
func meet(t *testing.T, status func(context.Context) error) *world {
	t.Helper()
	g := grpc.NewServer(grpc.WaitForHandlers(true))
	node := &strange{status: status}
	quorleasev1.RegisterAdmissionServer(g, node)
	quorleasev1.RegisterClusterServer(g, node)
	l := bufconn.Listen(1 << 16)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	config := members.DefaultConfig()
	config.Endpoints, config.SessionID = []string{"strange:1"}, "00112233445566778899aabbccddeeff"
	config.Dial = func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
	m, err := members.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		g.Stop()
		serving.Wait()
	})
	return &world{members: m}
}

// A node so busy that it has no time for its status is not away while it answers.
func TestBusyNodesAreNotSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w := meet(t, func(ctx context.Context) error {
			if asked.Add(1) > 1 {
				<-ctx.Done()
			}
			return nil
		})
		for range 600 {
			if _, err := w.ask(t, time.Second); err != nil {
				t.Fatal(err)
			}
			pass(50 * time.Millisecond)
		}
		if s := w.members.State(); s.Reach != members.Led || asked.Load() < 5 {
			t.Errorf("%+v, asked %d times", s, asked.Load())
		}
		w.await(t, 6*time.Second, func(s members.State) bool { return s.Reach == members.Unreachable })
	})
}

// One whose answers come late after all is there again, before it has told of itself.
func TestWhoAnswersLateIsNotAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w := meet(t, func(ctx context.Context) error {
			if asked.Add(1) > 1 {
				<-ctx.Done()
			}
			return nil
		})
		s, _, err := w.members.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.await(t, 6*time.Second, func(s members.State) bool { return s.Reach == members.Unreachable })
		if _, _, err := w.members.Session(t.Context()); !errors.Is(err, members.ErrUnreachable) {
			t.Fatalf("%v, want that it is away", err)
		}
		if _, err := s.Do(t.Context(), question()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.members.Session(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node that may not tell, to this client, is one that serves it all the same.
func TestNodesThatDontTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := meet(t, func(context.Context) error { return status.Error(codes.PermissionDenied, "not you") })
		pass(30 * time.Second)
		if _, err := w.ask(t, time.Second); err != nil || w.members.State().Reach != members.Led {
			t.Errorf("%v, %+v", err, w.members.State())
		}
	})
}

// Over TCP, with what is there where a test says nothing.
func TestOverTCP(t *testing.T) {
	t.Parallel()
	node := servertest.New()
	defer node.Ring.Close()
	config := server.DefaultConfig()
	config.Node, config.Events = node, node.Ring
	srv, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer srv.Close()
	serving.Go(func() { _ = srv.Serve(l) })
	found := make(chan members.State, 9)
	mine := members.DefaultConfig()
	mine.Endpoints, mine.SessionID = []string{l.Addr().String()}, "00112233445566778899aabbccddeeff"
	mine.Changed = func(s members.State) { found <- s }
	m, err := members.New(mine)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, e, err := m.Session(ctx); err != nil || e.Address != l.Addr().String() {
		t.Fatalf("%v: %v", e, err)
	}
	if s := <-found; s.Reach != members.Led || s.Leader.ID != "n1" {
		t.Errorf("told %+v", s)
	}
}
