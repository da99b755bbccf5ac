package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/quorlease/quorlease/api/capped"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/decode"
	"github.com/quorlease/quorlease/api/server/expand"
	"github.com/quorlease/quorlease/api/server/health"
	"github.com/quorlease/quorlease/api/server/limits"
	"github.com/quorlease/quorlease/api/server/overview"
	"github.com/quorlease/quorlease/api/server/sharing"
	"github.com/quorlease/quorlease/api/server/transport"
	"github.com/quorlease/quorlease/api/server/usage"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/events"
)

// Config is what a Server needs and may use.
type Config struct {
	// Node decides. Required.
	Node Node
	// Events are those of the node. Required.
	Events *events.Ring
	// Identify says who calls. Nil means Loopback.
	Identify Identify
	// Logger gets one line for each bug. Nil means none.
	Logger hclog.Logger
	// ConnectionsMax bounds the connections that are open at once, at least 1. An
	// idle one takes about 40 kB. One too many closes the oldest that has not begun
	// to speak HTTP/2, or else is closed itself.
	ConnectionsMax int
	// StreamsMax bounds the calls that are open at once over all connections, also
	// those whose message has not come yet, at least 1. One too many is answered
	// OVERLOADED.
	StreamsMax int
	// SessionItemsMax bounds the items of one session that have no answer or whose
	// answer is unsent, at least 1. Beyond it the session is not read.
	SessionItemsMax int
	// SessionBytesMax bounds the memory of all items of all sessions, in bytes, at
	// least 1 MiB. An item beyond it is answered OVERLOADED. Beyond twice as much a
	// session that has answers to take is not read.
	SessionBytesMax int64
	// SessionGrace is how long the slots of a session stay taken when its stream has
	// ended, so that a client that comes back keeps them; 0 to 1 h.
	SessionGrace time.Duration
	// DrainMax is how long Close waits for what is being answered, positive.
	DrainMax time.Duration
}

// DefaultConfig is complete but for Node and Events.
func DefaultConfig() Config {
	return Config{
		Identify:        Loopback,
		ConnectionsMax:  1000,
		StreamsMax:      4096,
		SessionItemsMax: 8192,
		SessionBytesMax: 32 << 20,
		SessionGrace:    5 * time.Second,
		DrainMax:        2 * time.Second,
	}
}

// Validate returns all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if c.Node == nil {
		errs = append(errs, errors.New("node: missing"))
	}
	if c.Events == nil {
		errs = append(errs, errors.New("events: missing"))
	}
	for _, bound := range []struct {
		name         string
		value, least int64
	}{
		{"connections max", int64(c.ConnectionsMax), 1},
		{"streams max", int64(c.StreamsMax), 1},
		{"session items max", int64(c.SessionItemsMax), 1},
		{"session bytes max", c.SessionBytesMax, 1 << 20},
		{"drain max", int64(c.DrainMax), 1},
	} {
		if bound.value < bound.least {
			errs = append(errs, fmt.Errorf("%s %d: must be at least %d", bound.name, bound.value, bound.least))
		}
	}
	if c.SessionGrace < 0 || c.SessionGrace > time.Hour {
		errs = append(errs, fmt.Errorf("session grace %v: must be 0s to %v", c.SessionGrace, time.Hour))
	}
	return errors.Join(errs...)
}

// errDraining ends calls that would go on for ever while the node closes.
var errDraining = fmt.Errorf("%w; ask another", cluster.ErrClosed)

// Server serves the public protocol for one node. It is safe for concurrent use.
type Server struct {
	config Config
	node   Node
	events *events.Ring
	log    hclog.Logger
	grpc   *grpc.Server
	codec  *decode.Codec
	// expander makes charges of attributes.
	expander *expand.Expander
	overview *overview.Hub
	sharing  *sharing.Desk
	// calls are the unary methods by their full names, for Call.
	calls map[string]unaryCall

	// open counts open calls, itemBytes the memory of sessions' items.
	open, itemBytes atomic.Int64

	// drainCtx ends when Close begins.
	drainCtx context.Context //nolint:containedctx // it is not a call's, it is a signal that contexts can follow
	drain    context.CancelFunc
	closed   sync.Once
	// joined waits for the goroutines that read sessions.
	joined sync.WaitGroup
}

// unaryCall is one method and the service that has it.
type unaryCall struct {
	handler grpc.MethodHandler
	service any
}

// New makes a Server. It serves nothing yet; Call works at once. Close ends the goroutines
// that it starts.
func New(config Config) (*Server, error) {
	if config.Identify == nil {
		config.Identify = Loopback
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("api server: %w", err)
	}
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	s := &Server{
		config: config, node: config.Node, events: config.Events, log: config.Logger.Named("api"),
		calls: map[string]unaryCall{}, codec: decode.New(), expander: expand.New(config.Node),
		sharing: sharing.New(config.Node),
	}
	s.drainCtx, s.drain = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(append(transport.Options(),
		grpc.InTapHandle(s.tap),
		grpc.ForceServerCodecV2(s.codec),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	)...)
	s.register(&quorleasev1.Admission_ServiceDesc, &admission{server: s})
	s.register(&quorleasev1.Limits_ServiceDesc, limits.New(s.node, author))
	s.register(&quorleasev1.Cluster_ServiceDesc, overview.NewCluster(s.node, s.node))
	s.register(&quorleasev1.Clients_ServiceDesc, overview.NewClients(s.node))
	s.register(&quorleasev1.UsageBook_ServiceDesc, usage.New(config.Node))
	s.register(&quorleasev1.Events_ServiceDesc, &eventsService{server: s})
	s.overview = overview.New(overview.Config{
		Node: s.node, UntilDrained: s.untilDrained, Draining: errDraining, Crowded: errOverloadedStreams,
	})
	s.register(&quorleasev1.Overview_ServiceDesc, s.overview)
	s.register(&healthpb.Health_ServiceDesc, health.New(health.Config{
		Ready: s.Ready, Services: s.grpc.GetServiceInfo, UntilDrained: s.untilDrained, Draining: errDraining,
		Unknown: func(service string) error { return fmt.Errorf("%w: %q", errNoService, service) },
	}))
	reflection.Register(s.grpc)
	for name, service := range s.grpc.GetServiceInfo() {
		for _, m := range service.Methods {
			if _, listed := methods["/"+name+"/"+m.Name]; !listed {
				return nil, fmt.Errorf("api server: /%s/%s is registered and nobody is allowed to call it", name, m.Name)
			}
		}
	}
	return s, nil
}

// register adds a service, for gRPC and for Call.
func (s *Server) register(desc *grpc.ServiceDesc, service any) {
	own := *desc
	own.Methods = nil
	for _, m := range desc.Methods {
		m.Handler = s.checked(m.Handler)
		own.Methods = append(own.Methods, m)
		s.calls["/"+desc.ServiceName+"/"+m.MethodName] = unaryCall{m.Handler, service}
	}
	s.grpc.RegisterService(&own, service)
}

// Serve answers connections from l until Close, and returns nil then. It takes
// l over.
func (s *Server) Serve(l net.Listener) error {
	closed := func() { s.log.Debug("connection closed: too many are open", "count", s.config.ConnectionsMax) }
	err := s.grpc.Serve(capped.Listen(l, s.config.ConnectionsMax, closed))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Ready says whether there is a leader and the node has caught up with it.
func (s *Server) Ready() bool {
	ready, _ := s.Readiness()
	return ready
}

// Readiness is Ready with the reason: HAS_LEADER, or why not: NO_LEADER,
// NO_QUORUM, CATCHING_UP or SHUTTING_DOWN.
func (s *Server) Readiness() (ready bool, reason string) {
	if s.isDraining() {
		return false, "SHUTTING_DOWN"
	}
	status := s.node.Status()
	if !status.Ready && status.Quorum == cluster.HasLeader {
		return false, "CATCHING_UP"
	}
	return status.Ready, status.Quorum.String()
}

func (s *Server) isDraining() bool { return s.drainCtx.Err() != nil }

// untilDrained ends with ctx and when Close begins.
func (s *Server) untilDrained(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.drainCtx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// Drain tells sessions and watches to end once what they were asked is
// answered; new items are refused. Ready is false from now on.
func (s *Server) Drain() { s.drain() }

// Close drains, waits at most DrainMax for what is being answered, and ends the
// rest. It returns when no goroutine is left. Calls after the first wait too.
func (s *Server) Close() error {
	s.Drain()
	s.closed.Do(func() {
		graceful := make(chan struct{})
		go func() {
			s.grpc.GracefulStop()
			close(graceful)
		}()
		timer := time.NewTimer(s.config.DrainMax)
		defer timer.Stop()
		select {
		case <-graceful:
		case <-timer.C:
			s.grpc.Stop()
			<-graceful
		}
		s.joined.Wait()
		s.overview.Close()
		s.sharing.Close()
	})
	return nil
}
