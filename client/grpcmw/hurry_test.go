package grpcmw

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/client"
)

// slow denies after a while, and lets pass who does not wait for it, as a client
// that fails open does.
type slow struct{ after time.Duration }

func (s slow) Acquire(ctx context.Context, _ client.Request) (*client.Decision, error) {
	select {
	case <-time.After(s.after):
		return &client.Decision{Denials: []client.Denial{{Reason: "RATE", RetryAfter: time.Second}}}, nil
	case <-ctx.Done():
		return &client.Decision{Granted: true, Source: client.Local}, nil
	}
}

func (slow) Release(context.Context, client.Lease) (*client.Settlement, error) { return nil, nil }

// TestHurry: who is limited can't get round the limit by leaving no time to ask.
func TestHurry(t *testing.T) {
	for name, row := range map[string]struct{ patience, answer time.Duration }{
		"a_deadline_shorter_than_the_answer":   {2 * time.Millisecond, 3 * time.Millisecond},
		"a_deadline_a_little_longer":           {20 * time.Millisecond, 10 * time.Millisecond},
		"a_deadline_that_has_passed":           {-time.Second, 3 * time.Millisecond},
		"an_answer_that_does_not_come_in_time": {5 * time.Millisecond, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i, err := New(Config{Decider: slow{row.answer}, Request: ByKey("tenants", nil)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), row.patience)
				defer cancel()
				passed := false
				_, err = i.UnaryServer(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a/b"},
					func(context.Context, any) (any, error) {
						passed = true
						return nil, nil
					})
				if code := status.Code(err); passed || code != codes.ResourceExhausted && code != codes.DeadlineExceeded {
					t.Errorf("passed %v, %v; want a refusal", passed, err)
				}
			})
		})
	}
}

// lender grants a tracked lease after a while, and keeps what was given back.
type lender struct {
	slow
	given []client.Lease
}

func (l *lender) Acquire(context.Context, client.Request) (*client.Decision, error) {
	<-time.After(l.after)
	return &client.Decision{Granted: true, Lease: client.Lease{ID: "one", Tracked: true}}, nil
}

func (l *lender) Release(ctx context.Context, lease client.Lease) (*client.Settlement, error) {
	l.given = append(l.given, lease)
	return nil, ctx.Err()
}

// TestHurryHoldsNothing: a lease that was granted to a call that is refused as too late
// is given back. Otherwise callers who leave no time would hold every slot.
func TestHurryHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &lender{slow: slow{after: 3 * time.Millisecond}}
		i, err := New(Config{Decider: from, Request: ByKey("tenants", nil)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		_, err = i.UnaryServer(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a/b"},
			func(context.Context, any) (any, error) { return nil, nil })
		if status.Code(err) != codes.DeadlineExceeded || len(from.given) != 1 || from.given[0].ID != "one" {
			t.Errorf("%v, given back: %v; want a refusal, and the lease given back", err, from.given)
		}
	})
}
