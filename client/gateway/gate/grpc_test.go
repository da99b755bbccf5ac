package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/gate"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// caller calls the service in one of the ways that there are.
type caller func(ctx context.Context, conn *grpc.ClientConn, model string, o ...grpc.CallOption) error

func unary(ctx context.Context, conn *grpc.ClientConn, model string, o ...grpc.CallOption) error {
	_, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: model}, o...)
	return err
}

func stream(ctx context.Context, conn *grpc.ClientConn, model string, o ...grpc.CallOption) error {
	s, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{Service: model}, o...)
	if err != nil {
		return err
	}
	if _, err = s.Recv(); err != nil {
		return err
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after the only answer: %w", err)
	}
	return nil
}

var ways = map[string]caller{"unary": unary, "stream": stream}

// each runs a test in every way.
func each(t *testing.T, f func(t *testing.T, w *world, conn *grpc.ClientConn, call caller)) {
	t.Helper()
	for name, call := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, w *world) {
				conn, stop := w.listen()
				defer stop()
				f(t, w, conn, call)
			})
		})
	}
}

// TestWhoCalls: whoever has no key is not let through, and nothing is charged.
func TestWhoCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, conn *grpc.ClientConn, call caller) {
		var trailer metadata.MD
		err := call(t.Context(), conn, "wide", grpc.Trailer(&trailer))
		if got := toldBy(err, trailer); got.code != codes.Unauthenticated || got.reason != "UNIDENTIFIED" {
			t.Errorf("without a key: %v", err)
		}
		err = call(as(t.Context(), "notes", "x-client-id", "nightly"), conn, "wide")
		if status.Code(err) != codes.PermissionDenied || len(w.all()) != 0 {
			t.Errorf("as somebody else: %v, and %d calls came through", err, len(w.all()))
		}
		if err := call(as(t.Context(), "notes"), conn, "wide"); err != nil {
			t.Fatal(err)
		}
		if a := w.last(); a == nil || a.Who.Client != "notes" || a.Who.Tenant != "notes-team" || a.Attempt != 0 ||
			a.Decision == nil || a.Decision.Source == client.Local {
			t.Errorf("the service found %+v", a)
		}
		if s := w.gate.Stats(); s.Passed != 1 || s.Refused != 2 || s.Unlimited != 0 {
			t.Errorf("%+v, want one passed and two refused", s)
		}
	})
}

// TestALimitRefuses: in the words that gRPC has for it.
func TestALimitRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, conn *grpc.ClientConn, call caller) {
		if err := call(as(t.Context(), "notes"), conn, "narrow one"); err != nil {
			t.Fatal(err)
		}
		before := w.level("tenant", "notes-team", "requests")
		var trailer metadata.MD
		err := call(as(t.Context(), "notes"), conn, "narrow other", grpc.Trailer(&trailer))
		got := toldBy(err, trailer)
		if got.wait < 29*time.Second || got.wait > 34*time.Second || got.pushback != fmt.Sprint(got.wait.Milliseconds()) {
			t.Errorf("told to wait %s, pushed back by %q ms: want half a minute and more",
				got.wait, got.pushback)
		}
		got.wait, got.pushback = 0, ""
		want := told{code: codes.ResourceExhausted, reason: "RATE", violations: []string{"limit:narrow/requests RATE"}}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(told{})); diff != "" || len(w.all()) != 1 {
			t.Errorf("%d calls came through; told (-want +got):\n%s", len(w.all()), diff)
		}
		if after := w.level("tenant", "notes-team", "requests"); after < before {
			t.Errorf("what was refused has cost the tenant %d requests", before-after)
		}
	})
}

// TestWhichAttempt: by the largest of the markers, or by what failed before.
func TestWhichAttempt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, conn *grpc.ClientConn, call caller) {
		for _, row := range []struct {
			markers []string
			want    uint32
		}{
			{nil, 0},
			{[]string{"x-retry-attempt", "1"}, 1},
			{[]string{"grpc-previous-rpc-attempts", "2"}, 2},
			{[]string{"x-retry-attempt", "1", "grpc-previous-rpc-attempts", "1"}, 1},
			{[]string{"x-retry-attempt", "minus one"}, 0},
		} {
			if err := call(as(t.Context(), "notes", row.markers...), conn, "wide"); err != nil {
				t.Fatalf("%v: %v", row.markers, err)
			}
			if got := w.last().Attempt; got != row.want {
				t.Errorf("%v: attempt %d, want %d", row.markers, got, row.want)
			}
		}
		w.serve = func(context.Context) error { return status.Error(codes.Unavailable, "down") }
		for want := range uint32(3) {
			if err := call(as(t.Context(), "notes"), conn, "wide again"); status.Code(err) != codes.Unavailable {
				t.Fatal(err)
			}
			if got := w.last().Attempt; got != want {
				t.Errorf("the same message for the %d. time: attempt %d", want+1, got)
			}
		}
		// Neither another's work nor other work is a retry.
		_ = call(as(t.Context(), "nightly"), conn, "wide again")
		_ = call(as(t.Context(), "notes"), conn, "wide otherwise")
		for _, a := range w.all()[8:] {
			if a.Attempt != 0 {
				t.Errorf("attempt %d of %s, want 0", a.Attempt, a.Who.Client)
			}
		}
	})
}

// TestTheBudgetComesFirst: a client that retries too much is told to stop, and takes no token.
func TestTheBudgetComesFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, conn *grpc.ClientConn, call caller) {
		// What a client has learned of its budget comes with a first answer, and what is held pays
		// after some.
		for i := range 20 {
			if err := call(as(t.Context(), "notes"), conn, fmt.Sprint("wide ", i)); err != nil {
				t.Fatal(err)
			}
			pass(100 * time.Millisecond)
		}
		var last told
		passed := 0
		for range 200 {
			var trailer metadata.MD
			err := call(as(t.Context(), "notes", "x-retry-attempt", "1"), conn, "wide", grpc.Trailer(&trailer))
			if last = toldBy(err, trailer); last.code == codes.OK {
				passed++
			}
			pass(20 * time.Millisecond)
		}
		want := told{
			code: codes.ResourceExhausted, reason: "RETRY_BUDGET", violations: []string{"client RETRY_BUDGET"},
			wait: time.Minute, pushback: "-1",
		}
		if diff := cmp.Diff(want, last, cmp.AllowUnexported(told{})); diff != "" || passed < 30 || passed > 60 {
			t.Errorf("%d retries passed; told (-want +got):\n%s", passed, diff)
		}
		before := w.level("tenant", "notes-team", "requests")
		for range 50 {
			_ = call(as(t.Context(), "notes", "x-retry-attempt", "1"), conn, "wide")
		}
		if after := w.level("tenant", "notes-team", "requests"); after < before {
			t.Errorf("refusals have cost %d requests", before-after)
		}
		if err := call(as(t.Context(), "nightly", "x-retry-attempt", "1"), conn, "wide"); err != nil {
			t.Errorf("somebody else: %v", err)
		}
	})
}

// retrying is a channel that retries by itself what is refused.
const retrying = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.01s",
	"maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// TestChannelsObey: gRPC's own retries wait as long as they are told, say which attempt they are,
// and stop where they are told to.
func TestChannelsObey(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		conn, stop := w.listen(grpc.WithDefaultServiceConfig(retrying))
		defer stop()
		for i := range 2 {
			start := time.Now()
			if err := unary(as(t.Context(), "notes"), conn, "narrow"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); (took > 25*time.Second) != (i == 1) || w.last().Attempt != uint32(i) {
				t.Errorf("call %d took %s as attempt %d: want the second one to wait for its turn", i, took, w.last().Attempt)
			}
		}
		for i := range 20 {
			_ = unary(as(t.Context(), "notes"), conn, fmt.Sprint("wide ", i))
			pass(100 * time.Millisecond)
		}
		refused, start := w.gate.Stats().Refused, time.Now()
		err := unary(as(t.Context(), "notes", "x-retry-attempt", "9"), conn, "wide")
		if got := w.gate.Stats().Refused - refused; toldBy(err, nil).reason != "ATTEMPTS" || got != 1 ||
			time.Since(start) > time.Second {
			t.Errorf("%v after %d refusals and %s, want one and no wait", err, got, time.Since(start))
		}
	})
}

// TestUsed: what a call has used is what it costs.
func TestUsed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, conn *grpc.ClientConn, call caller) {
		w.serve = func(ctx context.Context) error {
			gate.FromContext(ctx).Used(map[string]int64{"tokens": 3000})
			return nil
		}
		if err := call(as(t.Context(), "notes"), conn, "wide"); err != nil {
			t.Fatal(err)
		}
		pass(50 * time.Millisecond)
		if got := w.level("tenant", "notes-team", "tokens"); got < 7000 || got > 7600 {
			t.Errorf("%d tokens are left of 10,000, want those that were used gone, and refill since", got)
		}
	})
}

// TestThrottled: what the service is refused by others is no longer paid from what is held, and it is
// the client's name that has it.
func TestThrottled(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		conn, stop := w.listen()
		defer stop()
		for i := range 20 {
			if err := unary(as(t.Context(), "notes"), conn, fmt.Sprint("wide ", i)); err != nil {
				t.Fatal(err)
			}
			pass(100 * time.Millisecond)
		}
		w.serve = func(ctx context.Context) error {
			gate.FromContext(ctx).Throttled(10 * time.Second)
			return status.Error(codes.ResourceExhausted, "busy")
		}
		held := w.gate.Stats().Charges.Permits
		if held == 0 {
			t.Fatal("nothing is held")
		}
		for i := range 3 {
			_ = unary(as(t.Context(), "notes"), conn, fmt.Sprint("wide one of ", i))
			pass(2 * time.Second)
		}
		if n := w.gate.Stats().Charges.Permits - held; n != 1 {
			t.Errorf("%d calls were paid from what is held, want the first one", n)
		}
		var throttled int64
		w.View(func(m *fsm.Machine, now bucket.Instant) { throttled = m.Client(now, "notes").Count.Throttled })
		if throttled != 3 {
			t.Errorf("%d calls of the client were throttled, want 3", throttled)
		}
	})
}

// TestHurry: nobody gets round the limits by leaving no time to ask, or holds a slot by it.
func TestHurry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, conn *grpc.ClientConn, call caller) {
		if err := call(as(t.Context(), "notes"), conn, "wide"); err != nil {
			t.Fatal(err)
		}
		w.Delay(3 * time.Millisecond)
		ctx, cancel := context.WithTimeout(as(t.Context(), "notes"), 2*time.Millisecond)
		defer cancel()
		if err := call(ctx, conn, "slots"); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%v, want a refusal", err)
		}
		pass(time.Second)
		if err := call(as(t.Context(), "notes"), conn, "slots"); err != nil || len(w.all()) != 2 {
			t.Errorf("%v, and %d calls came through: want the slot to be free", err, len(w.all()))
		}
	})
}

// TestStreamsOfRequests: one that sends several is decided about when it begins.
func TestStreamsOfRequests(t *testing.T) {
	bubble(t, func(c *gate.Config) {
		c.Free = func(method string) bool { return method == healthv1.Health_Check_FullMethodName }
	}, func(t *testing.T, w *world) {
		conn, stop := w.listen()
		defer stop()
		ask := func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err != nil {
				return err
			}
			_ = s.Send(&reflectionv1.ServerReflectionRequest{
				MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
			})
			_, err = s.Recv()
			return err
		}
		if err := ask(t.Context()); status.Code(err) != codes.Unauthenticated {
			t.Errorf("without a key: %v", err)
		}
		if err := ask(as(t.Context(), "notes")); err != nil || w.gate.Stats().Passed != 1 {
			t.Errorf("%v, %+v", err, w.gate.Stats())
		}
		// What is free passes without a key, and is nobody's.
		if err := unary(t.Context(), conn, "wide"); err != nil || w.last() != nil || w.gate.Stats().Passed != 1 {
			t.Errorf("%v, found %+v", err, w.last())
		}
		// A handler need not ask whether there is a call.
		w.last().Used(map[string]int64{"tokens": 1})
		w.last().Throttled(time.Second)
	})
}

// TestWarnings: what will be refused one day is said in the header.
func TestWarnings(t *testing.T) {
	for name, call := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(c *gate.Config) {
				var err error
				if c.Who, err = who.New(who.Config{
					Clients:      []who.Client{{Name: "a", Tenant: "a", Keys: []string{who.HashKey("a")}}},
					Unidentified: who.Warn,
				}); err != nil {
					t.Fatal(err)
				}
			}, func(t *testing.T, w *world) {
				conn, stop := w.listen()
				defer stop()
				var header metadata.MD
				if err := call(t.Context(), conn, "wide", grpc.Header(&header)); err != nil {
					t.Fatal(err)
				}
				if len(header.Get("x-quorlease-warning")) != 1 || w.last().Who.Client != who.Unidentified {
					t.Errorf("%v for %+v, want a warning", header, w.last().Who)
				}
			})
		})
	}
}
