package gate_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/gateway/gate"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limits = `
limits:
- {name: tenant, match: {tenant: "*", model: "*"}, per: [tenant], rate: {requests: 100/s, tokens: 10_000/s},
   burst: {requests: 100, tokens: 10_000}}
- {name: narrow, match: {model: narrow}, rate: {requests: 2/min}, burst: {requests: 1}}
- {name: inflight, match: {model: slots}, concurrency: 1, lease: 1m}
retry_budgets: [{name: everybody, match: {client: "*"}}]
`

// world is a service behind a gate, and the nodes that the gate asks.
type world struct {
	*clienttest.Cluster
	healthv1.UnimplementedHealthServer
	t    *testing.T
	gate *gate.Gate
	// serve is what the service does, nil for nothing.
	serve func(context.Context) error

	mu   sync.Mutex
	seen []*gate.Admitted // guarded by mu
}

// answer is the service: it keeps what it found, and does as it was told.
func (w *world) answer(ctx context.Context) error {
	w.mu.Lock()
	w.seen = append(w.seen, gate.FromContext(ctx))
	w.mu.Unlock()
	if w.serve == nil {
		return nil
	}
	return w.serve(ctx)
}

// all are the calls that reached the service.
func (w *world) all() []*gate.Admitted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*gate.Admitted(nil), w.seen...)
}

// last is the newest of them.
func (w *world) last() *gate.Admitted {
	w.t.Helper()
	all := w.all()
	if len(all) == 0 {
		w.t.Fatal("nothing has reached the service")
	}
	return all[len(all)-1]
}

func (w *world) Check(ctx context.Context, _ *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return &healthv1.HealthCheckResponse{}, w.answer(ctx)
}

func (w *world) Watch(
	_ *healthv1.HealthCheckRequest, s grpc.ServerStreamingServer[healthv1.HealthCheckResponse],
) error {
	if err := w.answer(s.Context()); err != nil {
		return err
	}
	return s.Send(&healthv1.HealthCheckResponse{})
}

// book has two clients of two tenants.
func book(t *testing.T) *who.Book {
	t.Helper()
	b, err := who.New(who.Config{Clients: []who.Client{
		{Name: "notes", Tenant: "notes-team", Keys: []string{who.HashKey("key of notes")}},
		{Name: "nightly", Tenant: "data-team", Keys: []string{who.HashKey("key of nightly")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// price charges a gRPC call by the service that it asks about, and an HTTP request by its header.
func price(_ context.Context, c *gate.Call) gate.Price {
	model := "wide"
	switch message := c.Message.(type) {
	case *healthv1.HealthCheckRequest:
		model = message.GetService()
	case nil:
		if c.Request != nil && c.Request.Header.Get("Model") != "" {
			model = c.Request.Header.Get("Model")
		}
	}
	model, _, _ = strings.Cut(model, " ")
	return gate.Price{
		Attributes: map[string]string{"model": model}, Amounts: map[string]int64{"requests": 1, "tokens": 100},
	}
}

// bubble runs f in virtual time.
func bubble(t *testing.T, change func(*gate.Config), f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := clienttest.New(3)
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		if err := cluster.LimitsFile(limits); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(client.Config{
			Endpoints: cluster.Endpoints(), Client: "service", Dial: cluster.Dial,
			Alerts: []alert.Sink{alert.Func(func(alert.Alert) {})},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		config := gate.Config{Authority: c, Who: book(t), Price: price}
		if change != nil {
			change(&config)
		}
		w := &world{Cluster: cluster, t: t}
		if w.gate, err = gate.New(config); err != nil {
			t.Fatal(err)
		}
		defer w.gate.Close()
		f(t, w)
	})
}

// listen serves until close, and connects to it.
func (w *world) listen(options ...grpc.DialOption) (conn *grpc.ClientConn, stop func()) {
	w.t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(
		grpc.UnaryInterceptor(w.gate.UnaryServer), grpc.ChainStreamInterceptor(w.gate.StreamServer, captured),
	)
	healthv1.RegisterHealthServer(server, w)
	reflection.Register(server)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///service", append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return conn, func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	}
}

// captured keeps the context that the stream has before anything is received, as interceptors do that
// add to it.
func captured(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(server, &early{s, s.Context()})
}

type early struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // what such interceptors do
}

func (e *early) Context() context.Context { return e.ctx }

// as says who calls, and more.
func as(ctx context.Context, key string, more ...string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, append([]string{"authorization", "Bearer key of " + key}, more...)...)
}

// told is what a refusal says.
type told struct {
	code       codes.Code
	reason     string
	violations []string
	wait       time.Duration
	pushback   string
}

func toldBy(err error, trailer metadata.MD) told {
	st := status.Convert(err)
	all := told{code: st.Code(), pushback: strings.Join(trailer.Get("grpc-retry-pushback-ms"), ",")}
	for _, detail := range st.Details() {
		switch detail := detail.(type) {
		case *errdetails.QuotaFailure:
			for _, v := range detail.GetViolations() {
				all.violations = append(all.violations, v.GetSubject()+" "+v.GetDescription())
			}
		case *errdetails.RetryInfo:
			all.wait = detail.GetRetryDelay().AsDuration()
		case *errdetails.ErrorInfo:
			all.reason = detail.GetReason()
		}
	}
	return all
}

// level is what a bucket has left.
func (w *world) level(limit, key, dimension string) (level int64) {
	w.t.Helper()
	w.View(func(m *fsm.Machine, now bucket.Instant) {
		found, err := m.Inspect(now, limit, key)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, b := range found.Buckets {
			if b.Dimension == dimension {
				level = b.Level - b.Debt
			}
		}
	})
	return level
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }
