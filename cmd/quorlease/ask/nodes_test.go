package ask

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a server that answers every call the same way.
type node struct {
	addr  string
	calls atomic.Int64
}

// startNode serves answer until the test ends.
func startNode(t *testing.T, answer func(call int64, stream grpc.ServerStream) error) *node {
	t.Helper()
	n := &node{}
	listener := listenAnywhere(t)
	n.addr = listener.Addr().String()
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request emptypb.Empty
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		return answer(n.calls.Add(1), stream)
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return n
}

func listenAnywhere(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// hung is an address where connections are accepted and nobody says a word, as
// with a frozen process.
func hung(t *testing.T) string {
	t.Helper()
	listener := listenAnywhere(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// full is an address where every connection is closed at once, as by a node that
// has too many.
func full(t *testing.T) string {
	t.Helper()
	listener := listenAnywhere(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// dead is an address where nobody listens.
func dead(t *testing.T) string {
	t.Helper()
	listener := listenAnywhere(t)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

func yes(_ int64, stream grpc.ServerStream) error { return stream.SendMsg(&emptypb.Empty{}) }

// silent takes a question and never answers.
func silent(_ int64, stream grpc.ServerStream) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

func refuse(t *testing.T, code codes.Code, reason string) func(int64, grpc.ServerStream) error {
	t.Helper()
	s, err := status.New(code, "said no").WithDetails(&errdetails.ErrorInfo{Domain: "quorlease", Reason: reason})
	if err != nil {
		t.Fatal(err)
	}
	return func(int64, grpc.ServerStream) error { return s.Err() }
}

// then answers the first `times` calls with one function and the rest with yes.
func then(times int64, first func(int64, grpc.ServerStream) error) func(int64, grpc.ServerStream) error {
	return func(call int64, stream grpc.ServerStream) error {
		if call <= times {
			return first(call, stream)
		}
		return yes(call, stream)
	}
}

func askOnce(t *testing.T, kind Kind, timeout time.Duration, addrs ...string) error {
	t.Helper()
	nodes, err := Connect(addrs, timeout)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	began := time.Now()
	err = nodes.Do(t.Context(), Question{Kind: kind, Call: func(ctx context.Context, c grpc.ClientConnInterface) error {
		return c.Invoke(ctx, "/some.Service/Method", &emptypb.Empty{}, &emptypb.Empty{})
	}})
	if took := time.Since(began); took > timeout+time.Second {
		t.Errorf("took %s with a timeout of %s", took, timeout)
	}
	return err
}

func TestDoFindsTheNodeThatAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		before func(t *testing.T) string
		kind   Kind
	}{
		{"dead", dead, Once},
		{"hung", hung, Once},
		{"no_quorum", func(t *testing.T) string {
			t.Helper()
			return startNode(t, refuse(t, codes.Unavailable, "NO_QUORUM")).addr
		}, Once},
		{"no_leader", func(t *testing.T) string {
			t.Helper()
			return startNode(t, refuse(t, codes.Unavailable, "NO_LEADER")).addr
		}, Once},
		{"silent_G4", func(t *testing.T) string {
			t.Helper()
			return startNode(t, silent).addr
		}, Repeatable},
		{"outcome_unknown_G4", func(t *testing.T) string {
			t.Helper()
			return startNode(t, refuse(t, codes.Unavailable, "OUTCOME_UNKNOWN")).addr
		}, Repeatable},
		{"transport", func(t *testing.T) string {
			t.Helper()
			return startNode(t, func(int64, grpc.ServerStream) error { return status.Error(codes.Unavailable, "eof") }).addr
		}, Read},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			good := startNode(t, yes)
			if err := askOnce(t, row.kind, 2*time.Second, row.before(t), good.addr); err != nil {
				t.Fatal(err)
			}
			if got := good.calls.Load(); got != 1 {
				t.Errorf("the good node was asked %d times, want 1", got)
			}
		})
	}
}

func TestDoWaitsForAnElection(t *testing.T) {
	t.Parallel()
	n := startNode(t, then(3, refuse(t, codes.Unavailable, "NO_LEADER")))
	if err := askOnce(t, Once, 5*time.Second, n.addr); err != nil {
		t.Fatal(err)
	}
	if got := n.calls.Load(); got != 4 {
		t.Errorf("asked %d times, want 4", got)
	}
}

func TestG4DoAsksOnUntilItKnows(t *testing.T) {
	t.Parallel()
	t.Run("G4", func(t *testing.T) {
		t.Parallel()
		n := startNode(t, then(3, refuse(t, codes.Unavailable, "OUTCOME_UNKNOWN")))
		if err := askOnce(t, Repeatable, 5*time.Second, n.addr); err != nil {
			t.Fatal(err)
		}
		if got := n.calls.Load(); got != 4 {
			t.Errorf("asked %d times, want 4", got)
		}
	})
}

func TestDoNeverRepeatsWhatMayHaveHappened(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(int64, grpc.ServerStream) error{
		"outcome_unknown": refuse(t, codes.Unavailable, "OUTCOME_UNKNOWN"),
		"silent":          silent,
		"transport":       func(int64, grpc.ServerStream) error { return status.Error(codes.Unavailable, "eof") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := startNode(t, answer), startNode(t, yes)
			err := askOnce(t, Once, 500*time.Millisecond, first.addr, second.addr)
			var open *OutcomeUnknownError
			if !errors.As(err, &open) || !strings.Contains(err.Error(), "may have happened") {
				t.Errorf("got %v, want an unknown outcome", err)
			}
			if got := second.calls.Load(); got != 0 {
				t.Errorf("the second node was asked %d times, want 0", got)
			}
		})
	}
}

func TestDoSaysWhyNobodyAnswered(t *testing.T) {
	t.Parallel()
	noQuorum := startNode(t, refuse(t, codes.Unavailable, "NO_QUORUM"))
	noLeader := startNode(t, refuse(t, codes.Unavailable, "NO_LEADER"))
	unknownLimit := startNode(t, refuse(t, codes.NotFound, "LIMIT_NOT_FOUND"))
	mute := startNode(t, silent)
	deadAddr := dead(t)
	for _, row := range []struct {
		name  string
		kind  Kind
		addrs []string
		want  string
	}{
		{"dead", Once, []string{deadAddr}, "no node answered: " + deadAddr + ": connect: connection refused; start"},
		{
			"full", Once,
			[]string{full(t)},
			"closed the connection before it spoke gRPC: it may have too many connections, or be no node's --grpc",
		},
		{"hung", Once, []string{hung(t)}, "could not connect in time"},
		{"no_quorum", Once, []string{deadAddr, noQuorum.addr}, "no quorum, nothing was decided: "},
		{"no_leader", Once, []string{noLeader.addr}, "no answer within 500ms, nothing was decided: "},
		{"decided", Once, []string{unknownLimit.addr}, "said no; `quorlease limits get` lists"},
		{"read", Read, []string{mute.addr}, "no node answered: "},
		{"change", Repeatable, []string{mute.addr}, "it may have happened: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			err := Explain(askOnce(t, row.kind, 500*time.Millisecond, row.addrs...))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q in it", err, row.want)
			}
		})
	}
}

func TestDoIsInterrupted(t *testing.T) {
	t.Parallel()
	nodes, err := Connect([]string{hung(t)}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	err = nodes.Do(ctx, Question{Call: func(context.Context, grpc.ClientConnInterface) error { return nil }})
	if !errors.Is(err, errInterrupted) {
		t.Errorf("got %v, want %v", err, errInterrupted)
	}
}

func TestDoSaysWhatAnInterruptedChangeMayHaveDone(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	mute := startNode(t, func(call int64, stream grpc.ServerStream) error {
		close(asked)
		return silent(call, stream)
	})
	nodes, err := Connect([]string{mute.addr}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-asked
		cancel()
	}()
	err = nodes.Do(ctx, Question{Kind: Repeatable, Call: func(ctx context.Context, c grpc.ClientConnInterface) error {
		return c.Invoke(ctx, "/some.Service/Method", &emptypb.Empty{}, &emptypb.Empty{})
	}})
	var open *OutcomeUnknownError
	if !errors.As(err, &open) {
		t.Errorf("got %v, want an unknown outcome", err)
	}
}

func TestConnectRefusesBadEndpoints(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		endpoints []string
		timeout   time.Duration
		want      string
	}{
		{nil, time.Second, "--endpoints is empty"},
		{[]string{"localhost"}, time.Second, `--endpoints "localhost" is not host:port`},
		{[]string{"localhost:66000"}, time.Second, `"localhost:66000" has no port between 0 and 65535`},
		{[]string{"http://localhost:7101"}, time.Second, `is not host:port`},
		{[]string{"localhost:7101"}, 0, "--timeout 0s is not positive"},
	} {
		nodes, err := Connect(row.endpoints, row.timeout)
		if err == nil {
			nodes.Close()
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("Connect(%q, %s) = %v, want %q", row.endpoints, row.timeout, err, row.want)
		}
	}
}

func TestFirstConnectsInOrder(t *testing.T) {
	t.Parallel()
	good := startNode(t, yes)
	nodes, err := Connect([]string{dead(t), hung(t), good.addr}, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	if _, addr, err := nodes.First(t.Context()); err != nil || addr != good.addr {
		t.Errorf("First = %s, %v, want %s", addr, err, good.addr)
	}
}
