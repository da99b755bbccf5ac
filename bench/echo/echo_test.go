package echo

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorlease/quorlease/api/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves on loopback and connects to it.
func start(t *testing.T) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() {
		if err := Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		served.Wait()
	})
	return conn
}

func TestEcho(t *testing.T) {
	conn := start(t)
	item := Item{Seq: 7}
	copy(item.Payload[:], "hello")
	if err := Unary(t.Context(), conn, &item); err != nil {
		t.Fatal(err)
	}
	stream, err := Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var callers sync.WaitGroup
	for n := range 16 {
		caller := stream.NewCaller()
		own := Item{}
		own.Payload[0] = byte(n)
		callers.Go(func() {
			for range 200 {
				if err := caller.Do(t.Context(), own); err != nil {
					t.Errorf("caller %d: %v", n, err)
					return
				}
			}
		})
	}
	callers.Wait()
}

func TestEnded(t *testing.T) {
	stream, err := Open(t.Context(), start(t))
	if err != nil {
		t.Fatal(err)
	}
	caller := stream.NewCaller()
	stream.Close()
	if err := caller.Do(t.Context(), Item{}); err == nil {
		t.Error("no error on a closed stream")
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	batch := &Batch{Items: []Item{{Seq: 1}, {Seq: 2}}}
	good := make([]byte, batch.SizeVT())
	if _, err := batch.MarshalToSizedBufferVT(good); err != nil {
		t.Fatal(err)
	}
	var again Batch
	if err := again.UnmarshalVT(good); err != nil || len(again.Items) != 2 || again.Items[1].Seq != 2 {
		t.Errorf("%+v, %v; want the two items", again, err)
	}
	for _, bad := range []string{string(good[1:]), "x" + string(good[1:]), strings.Repeat("\x00", framedBytes)} {
		if err := (&Batch{}).UnmarshalVT([]byte(bad)); err == nil {
			t.Errorf("%d bytes: no error", len(bad))
		}
	}
}

// TestHung: a caller whose item nobody takes, since the server hangs, ends with its
// context.
func TestHung(t *testing.T) {
	t.Parallel()
	s := &Stream{send: make(chan Item), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.NewCaller().Do(ctx, Item{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
