package grpcmw

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorlease/quorlease/client"
)

var _ Decider = (*client.Client)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// decider answers with what it was told to, and keeps what it was asked.
type decider struct {
	decision *client.Decision
	err      error
	mu       sync.Mutex
	asked    []client.Request
}

func (d *decider) Acquire(_ context.Context, r client.Request) (*client.Decision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r)
	return d.decision, d.err
}

func (d *decider) Release(context.Context, client.Lease) (*client.Settlement, error) {
	return nil, d.err
}

// health is a service with a unary call and a stream; it keeps the decisions that
// it found.
type health struct {
	healthv1.UnimplementedHealthServer
	mu    sync.Mutex
	found []*client.Decision
}

func (h *health) note(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = append(h.found, FromContext(ctx))
}

func (h *health) Check(ctx context.Context, _ *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	h.note(ctx)
	return &healthv1.HealthCheckResponse{}, nil
}

func (h *health) Watch(
	_ *healthv1.HealthCheckRequest, s grpc.ServerStreamingServer[healthv1.HealthCheckResponse],
) error {
	h.note(s.Context())
	return s.Send(&healthv1.HealthCheckResponse{})
}

// world is a server and a connection to it.
type world struct {
	health *health
	client healthv1.HealthClient
}

func newWorld(t *testing.T, server []grpc.ServerOption, dial []grpc.DialOption) *world {
	t.Helper()
	w := &world{health: &health{}}
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer(server...)
	healthv1.RegisterHealthServer(s, w.health)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///x", append(dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		s.Stop()
		serving.Wait()
	})
	w.client = healthv1.NewHealthClient(conn)
	return w
}

// onServer and onClient put the interceptors on either side.
func onServer(t *testing.T, c Config) *world {
	t.Helper()
	i := mustNew(t, c)
	return newWorld(t, []grpc.ServerOption{
		grpc.UnaryInterceptor(i.UnaryServer), grpc.StreamInterceptor(i.StreamServer),
	}, nil)
}

func onClient(t *testing.T, c Config) *world {
	t.Helper()
	i := mustNew(t, c)
	return newWorld(t, nil, []grpc.DialOption{
		grpc.WithUnaryInterceptor(i.UnaryClient), grpc.WithStreamInterceptor(i.StreamClient),
	})
}

func mustNew(t *testing.T, c Config) *Interceptors {
	t.Helper()
	i, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// call makes the unary call and opens the stream, and wants both to end alike.
func (w *world) call(t *testing.T) error {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "team-a")
	_, unary := w.client.Check(ctx, &healthv1.HealthCheckRequest{})
	stream, err := w.client.Watch(ctx, &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	one, other := status.Convert(unary), status.Convert(err)
	if one.Code() != other.Code() || one.Message() != other.Message() {
		t.Errorf("unary %v, stream %v", unary, err)
	}
	return unary
}

func (w *world) calls() []*client.Decision {
	w.health.mu.Lock()
	defer w.health.mu.Unlock()
	return w.health.found
}

func byTenant(ctx context.Context) string {
	for _, md := range []func(context.Context) (metadata.MD, bool){
		metadata.FromIncomingContext, metadata.FromOutgoingContext,
	} {
		if values, ok := md(ctx); ok && len(values.Get("tenant")) > 0 {
			return values.Get("tenant")[0]
		}
	}
	return ""
}

var sides = map[string]func(*testing.T, Config) *world{"server": onServer, "client": onClient}

func TestGrantedPasses(t *testing.T) {
	t.Parallel()
	for side, put := range sides {
		d := &decider{decision: &client.Decision{Granted: true, Source: client.Local}}
		w := put(t, Config{Decider: d, Request: ByKey("api", byTenant)})
		if err := w.call(t); err != nil {
			t.Errorf("%s: %v", side, err)
		}
		want := client.Charge{Limit: "api", Key: "team-a", Dimension: "requests", Amount: 1}
		if len(d.asked) != 2 || d.asked[0].Charges[0] != want || d.asked[1].Charges[0] != want {
			t.Errorf("%s: asked %+v, want twice %+v", side, d.asked, want)
		}
		found := w.calls()
		mine := side == "server"
		if len(found) != 2 || (found[0] == d.decision) != mine || (found[1] == d.decision) != mine {
			t.Errorf("%s: handlers found %v", side, found)
		}
	}
}

func TestDeniedIsResourceExhausted(t *testing.T) {
	t.Parallel()
	for side, put := range sides {
		for _, never := range []bool{false, true} {
			wait := 23981 * time.Millisecond
			d := &decider{decision: &client.Decision{Denials: []client.Denial{
				{Reason: "RATE", Limit: "api", Key: "SECRET", Dimension: "requests", RetryAfter: wait, Never: never},
				{Reason: "RETRY_BUDGET", RetryAfter: time.Millisecond},
			}}}
			w := put(t, Config{Decider: d, Request: ByKey("api", nil)})
			got := status.Convert(w.call(t))
			if got.Code() != codes.ResourceExhausted || got.Message() != "denied: RATE" || len(w.calls()) != 0 ||
				strings.Contains(got.String(), "SECRET") {
				t.Errorf("%s: %v, %d calls came through", side, got, len(w.calls()))
			}
			var violations []*errdetails.QuotaFailure_Violation
			var delay time.Duration
			for _, detail := range got.Details() {
				switch detail := detail.(type) {
				case *errdetails.QuotaFailure:
					violations = detail.GetViolations()
				case *errdetails.RetryInfo:
					delay = detail.GetRetryDelay().AsDuration()
				}
			}
			if never != (delay == 0) || !never && (delay < wait || delay > wait+wait/10+time.Millisecond) {
				t.Errorf("%s, never %t: retry after %s, want %s and up to a tenth more", side, never, delay, wait)
			}
			if len(violations) != 2 || violations[0].GetSubject() != "limit:api/requests" ||
				violations[0].GetDescription() != "RATE" || violations[1].GetSubject() != "client" {
				t.Errorf("%s: violations %v", side, violations)
			}
		}
	}
}

// A denial that says no wait is no denial for which no waiting helps.
func TestADenialWithoutAWait(t *testing.T) {
	t.Parallel()
	for _, never := range []bool{false, true} {
		hints := 0
		refused := refusalOf(&client.Decision{Denials: []client.Denial{{Reason: "CONCURRENCY", Never: never}}})
		err := refused.Err()
		for _, detail := range status.Convert(err).Details() {
			if _, ok := detail.(*errdetails.RetryInfo); ok {
				hints++
			}
		}
		if (hints == 0) != never {
			t.Errorf("never %t: %d hints", never, hints)
		}
	}
}

// TestPushback: a server's refusal says when to come back to channels that retry by themselves, or
// that they should not.
func TestPushback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		denial      client.Denial
		least, most int64
	}{
		{"a_wait", client.Denial{Reason: "RATE", RetryAfter: time.Second}, 1000, 1101},
		{"no_waiting_helps", client.Denial{Reason: "EXCEEDS_BURST", Never: true}, -1, -1},
		{"a_spent_retry_budget", client.Denial{Reason: "RETRY_BUDGET", RetryAfter: time.Minute}, -1, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &decider{decision: &client.Decision{Denials: []client.Denial{c.denial}}}
			w := onServer(t, Config{Decider: d, Request: ByKey("api", nil)})
			var unary, stream metadata.MD
			_, _ = w.client.Check(t.Context(), &healthv1.HealthCheckRequest{}, grpc.Trailer(&unary))
			s, err := w.client.Watch(t.Context(), &healthv1.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = s.Recv()
			stream = s.Trailer()
			for _, trailer := range []metadata.MD{unary, stream} {
				text := strings.Join(trailer.Get("grpc-retry-pushback-ms"), ",")
				if ms, err := strconv.ParseInt(text, 10, 64); err != nil || ms < c.least || ms > c.most {
					t.Errorf("pushback %q, want %d to %d ms", text, c.least, c.most)
				}
			}
		})
	}
}

func TestWhatIsNotChargedPassesUnasked(t *testing.T) {
	t.Parallel()
	d := &decider{err: errors.New("nobody should ask")}
	var methods []string
	note := func(_ context.Context, method string, message any) (client.Request, bool) {
		if _, ok := message.(*healthv1.HealthCheckRequest); ok {
			method += " with its message"
		}
		methods = append(methods, method)
		return client.Request{}, false
	}
	w := onServer(t, Config{Decider: d, Request: note})
	err := w.call(t)
	want := "/grpc.health.v1.Health/Check with its message, /grpc.health.v1.Health/Watch"
	if err != nil || len(d.asked) != 0 || strings.Join(methods, ", ") != want {
		t.Errorf("%v, asked %v about %q", err, d.asked, methods)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	bad := &client.BadRequestError{Field: "key", Problem: "too long"}
	cases := []struct {
		name    string
		err     error
		onError func(context.Context, string, error) bool
		want    codes.Code
		message string
	}{
		{"a_call_at_fault", bad, nil, codes.InvalidArgument, "key: too long"},
		{"anything_else_is_not_told", errors.New("SECRET"), nil, codes.Unavailable, "could not be checked"},
		{"passed_by_choice", client.ErrClosed, func(_ context.Context, method string, err error) bool {
			return strings.HasPrefix(method, "/grpc.health") && errors.Is(err, client.ErrClosed)
		}, codes.OK, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := onServer(t, Config{Decider: &decider{err: c.err}, Request: ByKey("api", nil), OnError: c.onError})
			err := w.call(t)
			if status.Code(err) != c.want || err != nil && (!strings.Contains(err.Error(), c.message) ||
				strings.Contains(err.Error(), "SECRET")) {
				t.Errorf("%v, want %s %s", err, c.want, c.message)
			}
		})
	}
	t.Run("a_caller_that_left", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := undecided(ctx, ctx.Err()); status.Code(err) != codes.Canceled {
			t.Errorf("got %v, want CANCELLED", err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	if want := "interceptor configuration: decider: missing\nrequest: missing"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRefusedSaysWhenToRetry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refused Refused
		code    codes.Code
		want    string
	}{
		{Refused{Wait: time.Minute, Final: true}, codes.ResourceExhausted, "-1"},
		{Refused{Wait: 1500001 * time.Nanosecond, Code: codes.Unavailable}, codes.Unavailable, "2"},
		{Refused{Reason: "X"}, codes.ResourceExhausted, ""},
	} {
		err := c.refused.Err()
		got := strings.Join(c.refused.Trailer().Get("grpc-retry-pushback-ms"), ",")
		if status.Code(err) != c.code || got != c.want {
			t.Errorf("%+v: %v with %q, want %s with %q", c.refused, err, got, c.code, c.want)
		}
		var info, retry int
		for _, detail := range status.Convert(err).Details() {
			switch detail := detail.(type) {
			case *errdetails.RetryInfo:
				retry++
			case *errdetails.ErrorInfo:
				info++
				if detail.GetReason() != c.refused.Reason || detail.GetDomain() != "quorlease" {
					t.Errorf("%v", detail)
				}
			}
		}
		if (retry == 1) != (c.refused.Wait > 0) || (info == 1) != (c.refused.Reason != "") {
			t.Errorf("%+v: %d hints, %d reasons", c.refused, retry, info)
		}
	}
}
