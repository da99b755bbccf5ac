package server_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

func TestLoopbackIsTheOperator(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		addr net.Addr
		want server.Role
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, server.Operator},
		{&net.TCPAddr{IP: net.IPv4(127, 9, 9, 9)}, server.Operator},
		{&net.TCPAddr{IP: net.IPv6loopback}, server.Operator},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1")}, server.Operator},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, server.Nobody},
		{&net.TCPAddr{IP: net.IPv4zero}, server.Nobody},
		{&net.TCPAddr{}, server.Nobody},
		{&net.UnixAddr{Name: "127.0.0.1"}, server.Nobody},
		{nil, server.Nobody},
	} {
		id, err := server.Loopback(&peer.Peer{Addr: test.addr})
		if id.Role != test.want || (err == nil) != (test.want == server.Operator) {
			t.Errorf("%v: %v, %v, want %v", test.addr, id.Role, err, test.want)
		}
		if id, err := server.Anyone(&peer.Peer{Addr: test.addr}); id.Role != server.Operator || err != nil {
			t.Errorf("insecure %v: %v, %v", test.addr, id.Role, err)
		}
	}
}

// G11: whoever has no right gets nothing, whatever is called.
func TestG11NoStranger(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, func(c *server.Config) {
		c.Identify = func(p *peer.Peer) (server.Identity, error) {
			return server.Loopback(&peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}})
		}
	})
	conn := dial(t, address)
	_, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t), &quorleasev1.AcquireRequest{})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("acquire: %v", err)
	}
	stream, err := quorleasev1.NewEventsClient(conn).Watch(patient(t), &quorleasev1.EventsWatchRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("watch: %v", err)
	}
	reflected, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(patient(t))
	if err == nil {
		_, err = reflected.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("reflection: %v", err)
	}
}

// A client may ask for admission, and only an operator may change limits.
func TestRoles(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, func(c *server.Config) {
		c.Identify = func(*peer.Peer) (server.Identity, error) {
			return server.Identity{Name: "gateway-1", Role: server.Client}, nil
		}
	})
	conn := dial(t, address)
	_, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t),
		&quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	if e := server.ErrorOf(err); e.Cause.Reason != "LIMIT_NOT_FOUND" {
		t.Errorf("acquire: %v", err)
	}
	for name, call := range map[string]func() error{
		"apply": func() error {
			_, err := quorleasev1.NewLimitsClient(conn).Apply(patient(t), &quorleasev1.LimitsApplyRequest{})
			return err
		},
		"adjust": func() error {
			_, err := quorleasev1.NewLimitsClient(conn).Adjust(patient(t), &quorleasev1.LimitsAdjustRequest{})
			return err
		},
		"status": func() error {
			_, err := quorleasev1.NewClusterClient(conn).Status(patient(t), &quorleasev1.ClusterStatusRequest{})
			return err
		},
	} {
		if e := server.ErrorOf(call()); e == nil || e.Cause.Reason != "NO_RIGHT" {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// The lease of one credential is not there for another; the operator may act on
// all.
func TestForeignLease(t *testing.T) {
	t.Parallel()
	who := make(chan string, 8)
	_, _, address := start(t, func(c *server.Config) {
		c.Identify = func(*peer.Peer) (server.Identity, error) {
			return server.Identity{Name: <-who, Role: server.Operator}, nil
		}
	})
	conn := dial(t, address)
	as := func(name string) context.Context {
		who <- name
		return patient(t)
	}
	who <- ""
	configure(t, conn, "a", nil)
	admission := quorleasev1.NewAdmissionClient(conn)
	_, err := admission.Acquire(as("one"), &quorleasev1.AcquireRequest{
		LeaseId: leaseID, Track: true, Charges: charge("a", 2),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, foreign := admission.Settle(as("two"), &quorleasev1.SettleRequest{LeaseId: leaseID})
	_, unknown := admission.Settle(as("two"), &quorleasev1.SettleRequest{LeaseId: strings.Repeat("0", 32)})
	if e, other := server.ErrorOf(foreign), server.ErrorOf(unknown); e.Cause.Reason != "LEASE_NOT_FOUND" ||
		other.Cause.Reason != "LEASE_NOT_FOUND" {
		t.Errorf("foreign: %v; unknown: %v", foreign, unknown)
	}
	if _, err := admission.Settle(as(""), &quorleasev1.SettleRequest{LeaseId: leaseID}); err != nil {
		t.Errorf("operator: %v", err)
	}
}

// A path that is almost that of a method reaches no handler, so that no rule can
// be passed by spelling it differently.
func TestAlmostPaths(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	for _, path := range []string{
		"quorlease.v1.Limits/Apply", "//quorlease.v1.Limits/Apply", "/quorlease.v1.Limits//Apply",
		"/quorlease.v1.limits/apply", "/QUORLEASE.V1.LIMITS/APPLY", "/quorlease.v1.Limits/Apply/",
		"/quorlease.v1.Limits/Apply?x", "/quorlease.v1.Limits/%41pply", "/", "", "/quorlease.v1.Limits/",
	} {
		if got := callPath(t, address, path); got != "12" {
			t.Errorf("%q: grpc-status %q, want 12 (UNIMPLEMENTED)", path, got)
		}
	}
	if got := callPath(t, address, "/quorlease.v1.Limits/Apply"); got != "0" {
		t.Errorf("the path itself: grpc-status %q", got)
	}
}

// callPath makes a unary call with an empty message by hand and returns its
// grpc-status.
func callPath(t *testing.T, address, path string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, f := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", path},
		{":authority", "localhost"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	err = errors.Join(
		framer.WriteSettings(),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true}),
		framer.WriteData(1, true, make([]byte, 5)),
	)
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		if headers, ok := frame.(*http2.MetaHeadersFrame); ok {
			for _, f := range headers.Fields {
				if f.Name == "grpc-status" {
					return f.Value
				}
			}
		}
	}
}
