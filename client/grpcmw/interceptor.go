// Package grpcmw asks a Quorlease client about every gRPC call, of a server or of
// a client, and refuses those that are denied with RESOURCE_EXHAUSTED.
//
// Where nobody answers the client decides by itself (it fails open), within its
// deadline: what it grants passes like anything else.
//
// What is charged, and which attempt it is, is the caller's to say (Config.Request). Package
// client/gateway/gate finds out itself who calls and which attempt it is.
package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/client"
)

// Decider is a client, as far as this package needs it. *client.Client is one.
type Decider interface {
	Acquire(ctx context.Context, r client.Request) (*client.Decision, error)
	// Release gives a tracked lease back that no handler will see.
	Release(ctx context.Context, lease client.Lease) (*client.Settlement, error)
}

// Config says what calls are charged.
type Config struct {
	// Decider decides. Required. It must not itself call over a connection that has
	// these interceptors.
	Decider Decider
	// Request says what a call is charged. Required. See ByKey.
	Request Request
	// OnError hears of calls that could not be decided: one that asks for what there
	// is not (client.BadRequestError), an unknown limit, a closed client. It is not
	// called because nodes are away: that is decided. True lets the call pass. Nil,
	// or false: it is refused, with INVALID_ARGUMENT where it is the call's own
	// fault, else with the context's error or UNAVAILABLE.
	OnError func(ctx context.Context, method string, err error) (pass bool)
}

// Request says what a call is charged; not charged, it passes. method is the full
// one, "/package.Service/Method"; message is the request of a unary call and nil
// for a stream, which is charged once, when it is opened.
type Request func(ctx context.Context, method string, message any) (charge client.Request, charged bool)

// ByKey charges each call one token of the dimension "requests" of a limit. key
// says which instance of the limit counts, such as a tenant; nil is for a limit
// without keys. What callers choose freely, like metadata that nobody checks, is
// no key: they would choose another.
func ByKey(limit string, key func(ctx context.Context) string) Request {
	return func(ctx context.Context, _ string, _ any) (client.Request, bool) {
		charge := client.Charge{Limit: limit, Dimension: "requests", Amount: 1}
		if key != nil {
			charge.Key = key(ctx)
		}
		return client.Request{Charges: []client.Charge{charge}}, true
	}
}

// Interceptors are those of one configuration. They are safe for concurrent use.
type Interceptors struct{ config Config }

// New returns the interceptors.
func New(c Config) (*Interceptors, error) {
	var problems []error
	if c.Decider == nil {
		problems = append(problems, errors.New("decider: missing"))
	}
	if c.Request == nil {
		problems = append(problems, errors.New("request: missing"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("interceptor configuration: %w", err)
	}
	return &Interceptors{c}, nil
}

// UnaryServer is a grpc.UnaryServerInterceptor. The handler behind it finds the
// decision with FromContext; a tracked lease is its own to settle. A channel that
// retries by itself is told when to, or not to, in the trailer of a refusal.
func (i *Interceptors) UnaryServer(
	ctx context.Context, message any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (any, error) {
	decided, err := i.admit(ctx, info.FullMethod, message, func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) })
	if err != nil {
		return nil, err
	}
	return next(decided, message)
}

// StreamServer is a grpc.StreamServerInterceptor: as UnaryServer, once a stream.
func (i *Interceptors) StreamServer(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	ctx, err := i.admit(stream.Context(), info.FullMethod, nil, stream.SetTrailer)
	if err != nil {
		return err
	}
	return next(server, &decidedStream{stream, ctx})
}

// decidedStream is a stream whose context has the decision.
type decidedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream has a context, and this one replaces it
}

// Context is the stream's, with the decision.
func (s *decidedStream) Context() context.Context { return s.ctx }

// UnaryClient is a grpc.UnaryClientInterceptor. A call that is denied is not
// sent; the error is the one that a server would have answered.
//
//nolint:revive // the shape is gRPC's
func (i *Interceptors) UnaryClient(
	ctx context.Context, method string, message, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	ctx, err := i.decide(ctx, method, message, nil)
	if err != nil {
		return err
	}
	return invoke(ctx, method, message, reply, conn, options...)
}

// StreamClient is a grpc.StreamClientInterceptor: as UnaryClient, once a stream.
//
//nolint:revive // the shape is gRPC's
func (i *Interceptors) StreamClient(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, err := i.decide(ctx, method, nil, nil)
	if err != nil {
		return nil, err
	}
	return open(ctx, desc, conn, method, options...)
}

// hurryMax is how long a server asks about a call although its caller has less time.
const hurryMax = 100 * time.Millisecond

// admit is decide for a call that came from somewhere else. How long it may take
// was said by whoever is to be limited: with a deadline that is shorter than any
// answer he would have every call decided by the client itself. So it is asked for
// longer than that, and what was decided too late passes nothing.
func (i *Interceptors) admit(
	ctx context.Context, method string, message any, trailer func(metadata.MD),
) (context.Context, error) {
	deadline, bounded := ctx.Deadline()
	if !bounded || time.Until(deadline) >= hurryMax {
		return i.decide(ctx, method, message, trailer)
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), hurryMax)
	defer cancel()
	decided, err := i.decide(asking, method, message, trailer)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		i.giveBack(ctx, FromContext(decided))
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if decision := FromContext(decided); decision != nil {
		return context.WithValue(ctx, decisionKey{}, decision), nil
	}
	return ctx, nil
}

// giveBack releases what was granted too late: callers who leave no time must not hold
// slots until their leases end. What can't be given back soon ends by itself.
func (i *Interceptors) giveBack(ctx context.Context, late *client.Decision) {
	if late == nil || !late.Lease.Tracked {
		return
	}
	giving, cancel := context.WithTimeout(context.WithoutCancel(ctx), hurryMax)
	defer cancel()
	_, _ = i.config.Decider.Release(giving, late.Lease)
}

// decide returns the context of a call that passes, or why it does not. What a denial says of
// retries goes to trailer, if there is one.
func (i *Interceptors) decide(
	ctx context.Context, method string, message any, trailer func(metadata.MD),
) (context.Context, error) {
	charge, charged := i.config.Request(ctx, method, message)
	if !charged {
		return ctx, nil
	}
	decision, err := i.config.Decider.Acquire(ctx, charge)
	switch {
	case err != nil && i.config.OnError != nil && i.config.OnError(ctx, method, err):
		return ctx, nil
	case err != nil:
		return nil, undecided(ctx, err)
	case !decision.Granted:
		refused := refusalOf(decision)
		if trailer != nil {
			trailer(refused.Trailer())
		}
		return nil, refused.Err()
	default:
		return context.WithValue(ctx, decisionKey{}, decision), nil
	}
}

type decisionKey struct{}

// FromContext is the decision that let a call pass, from the context that the
// handler gets; nil where it was not charged. Its Source is client.Local where
// the client decided by itself.
func FromContext(ctx context.Context) *client.Decision {
	decision, _ := ctx.Value(decisionKey{}).(*client.Decision)
	return decision
}
