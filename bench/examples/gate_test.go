package examples_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/gate"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// gate is a service over gRPC that answers by itself, with the interceptor of client/gateway/gate and
// a real node: each client has its retry budget there, and each tenant its rate.
func (s *site) gate() {
	from := filepath.Join(folder, "gateway", "compatible", "limits.yaml")
	s.do("limits", "apply", "--prune", "-f", from, "--endpoints", s.nodes.GRPC(0))
	service := s.service()
	call := func(key, attempt string) (code codes.Code, reason, pushback string) {
		ctx := metadata.AppendToOutgoingContext(s.Context(), "authorization", "Bearer "+key, "x-retry-attempt", attempt)
		var trailer metadata.MD
		_, err := service.Check(ctx, &healthv1.HealthCheckRequest{}, grpc.Trailer(&trailer))
		st := status.Convert(err)
		for _, detail := range st.Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok {
				reason = info.GetReason()
			}
		}
		return st.Code(), reason, strings.Join(trailer.Get("grpc-retry-pushback-ms"), ",")
	}
	// Fifty of a client's retries are let through whatever part of its requests they are.
	passed := 0
	for range 58 {
		if code, reason, pushback := call("key of storm", "1"); code == codes.OK {
			passed++
		} else if code != codes.ResourceExhausted || reason != "RETRY_BUDGET" || pushback != "-1" {
			s.Fatalf("%s for %s, pushback %q: want the retry budget, and not to retry", code, reason, pushback)
		}
	}
	if passed < 48 || passed > 52 {
		s.Errorf("%d retries of 58 passed, want about 50", passed)
	}
	if code, reason, _ := call("key of calm", "0"); code != codes.OK {
		s.Errorf("another client: %s for %s", code, reason)
	}
	var code codes.Code
	var reason, pushback string
	for range 300 {
		if code, reason, pushback = call("key of calm", "0"); code != codes.OK {
			break
		}
	}
	if code != codes.ResourceExhausted || reason != "RATE" || pushback == "" || pushback == "-1" {
		s.Errorf("after more than a tenant has: %s for %s, pushback %q", code, reason, pushback)
	}
	if code, _, _ := call("no key", "0"); code != codes.Unauthenticated {
		s.Errorf("without a key: %s", code)
	}
}

// service starts the service, and connects to it.
func (s *site) service() healthv1.HealthClient {
	s.Helper()
	authority, err := client.New(client.Config{
		Endpoints: []string{s.nodes.GRPC(0)}, Client: "service", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = authority.Close() })
	clients, err := who.New(who.Config{Clients: []who.Client{
		{Name: "storm", Tenant: "storm", Keys: []string{who.HashKey("key of storm")}},
		{Name: "calm", Tenant: "calm", Keys: []string{who.HashKey("key of calm")}},
	}})
	if err != nil {
		s.Fatal(err)
	}
	g, err := gate.New(gate.Config{Authority: authority, Who: clients})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = g.Close() })
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(g.UnaryServer), grpc.StreamInterceptor(g.StreamServer))
	healthv1.RegisterHealthServer(server, health.NewServer())
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	s.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	conn, err := bench.Dial(listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return healthv1.NewHealthClient(conn)
}
