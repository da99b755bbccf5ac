// Package health is the standard health service of gRPC. Every service is as healthy as
// the node.
package health

import (
	"context"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// every is how often a watcher is told.
const every = 500 * time.Millisecond

// Config says whose health it is. All of it is required, and called from any goroutine.
type Config struct {
	// Ready says whether there is a leader and this node has caught up with it.
	Ready func() bool
	// Services are those that can be asked for.
	Services func() map[string]grpc.ServiceInfo
	// Unknown is the answer to whoever asks for another one.
	Unknown func(service string) error
	// UntilDrained ends with a context and when the node closes; Draining says so.
	UntilDrained func(context.Context) (context.Context, context.CancelFunc)
	Draining     error
}

// Server is the service. It is safe for concurrent use.
type Server struct {
	healthpb.UnimplementedHealthServer
	config Config
}

// New returns the service.
func New(c Config) *Server { return &Server{config: c} }

func (s *Server) now() healthpb.HealthCheckResponse_ServingStatus {
	if s.config.Ready() {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

// knows reports whether a service is one of the node's; the empty name is the node.
func (s *Server) knows(service string) bool {
	_, known := s.config.Services()[service]
	return known || service == ""
}

// Check answers for the whole node, or for one of its services.
func (s *Server) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if !s.knows(r.GetService()) {
		return nil, s.config.Unknown(r.GetService())
	}
	return &healthpb.HealthCheckResponse{Status: s.now()}, nil
}

// List answers for every service.
func (s *Server) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	statuses := map[string]*healthpb.HealthCheckResponse{"": {Status: s.now()}}
	for name := range s.config.Services() {
		statuses[name] = &healthpb.HealthCheckResponse{Status: s.now()}
	}
	return &healthpb.HealthListResponse{Statuses: statuses}, nil
}

// Watch sends the health whenever it changes.
func (s *Server) Watch(
	r *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse],
) error {
	ctx, cancel := s.config.UntilDrained(stream.Context())
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	known := s.knows(r.GetService())
	last := healthpb.HealthCheckResponse_UNKNOWN
	for {
		now := s.now()
		if !known {
			now = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if now != last {
			last = now
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return s.config.Draining
		}
	}
}
