package gate

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// warningKey is the metadata in which a client is told what will be refused one day.
const warningKey = "x-quorlease-warning"

// UnaryServer is a grpc.UnaryServerInterceptor. The handler finds the call with FromContext.
func (g *Gate) UnaryServer(
	ctx context.Context, message any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (reply any, err error) {
	if g.isFree(info.FullMethod) {
		return next(ctx, message)
	}
	to := answerer{
		header:  func(md metadata.MD) { _ = grpc.SetHeader(ctx, md) },
		trailer: func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) },
	}
	a, err := g.decide(ctx, &Call{Method: info.FullMethod, Message: message}, to)
	if err != nil {
		return nil, err
	}
	// A handler that panics has failed.
	outcome := attempt.Failed
	defer func() { a.end(outcome) }()
	reply, err = next(a.within(ctx), message)
	outcome = outcomeOf(err)
	return reply, err
}

// StreamServer is a grpc.StreamServerInterceptor, as UnaryServer. A call with one request is
// decided about when that was received, which generated code does before it calls the handler;
// one that sends several when it begins. It is charged once.
func (g *Gate) StreamServer(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	if g.isFree(info.FullMethod) {
		return next(server, stream)
	}
	s := &decided{ServerStream: stream, gate: g, call: Call{Method: info.FullMethod}}
	outcome := attempt.Failed
	defer func() {
		if s.admitted != nil {
			s.admitted.end(outcome)
		}
	}()
	if info.IsClientStream {
		if err := s.decide(nil); err != nil {
			return err
		}
	}
	err := next(server, s)
	outcome = outcomeOf(err)
	return err
}

func (g *Gate) isFree(method string) bool { return g.config.Free != nil && g.config.Free(method) }

// decided is a stream that is decided about before anything of it is answered. It is used by one
// goroutine until then, as gRPC has it for a call with one request.
type decided struct {
	grpc.ServerStream
	gate     *Gate
	call     Call
	admitted *Admitted
	// no is why the call is refused.
	no error
	// place is for whoever takes the context before that is decided.
	place place
}

// Context is the stream's, with the call once it is let through.
func (s *decided) Context() context.Context { return s.place.within(s.ServerStream.Context()) }

// RecvMsg receives, and decides once there is the first message.
func (s *decided) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	return s.decide(message)
}

// SendMsg sends, if that is decided.
func (s *decided) SendMsg(message any) error {
	if err := s.decide(nil); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(message)
}

// decide decides once.
func (s *decided) decide(message any) error {
	if s.admitted != nil || s.no != nil {
		return s.no
	}
	s.call.Message = message
	s.admitted, s.no = s.gate.decide(s.ServerStream.Context(), &s.call, answerer{
		header:  func(md metadata.MD) { _ = s.SetHeader(md) },
		trailer: s.SetTrailer,
	})
	s.place.admitted.Store(s.admitted)
	return s.no
}

// answerer is where metadata goes.
type answerer struct{ header, trailer func(metadata.MD) }

// decide decides about a call of gRPC's. The error is the status that refuses it.
func (g *Gate) decide(ctx context.Context, c *Call, to answerer) (*Admitted, error) {
	r := requestOf(ctx, c.Method)
	id, no := g.config.Who.Identify(r)
	if no == nil {
		for _, warning := range id.Warnings {
			to.header(metadata.Pairs(warningKey, warning))
		}
		c.Who = id
		var a *Admitted
		if a, no = g.admit(ctx, c, r.Header, g.workOf(c)); no == nil {
			return a, nil
		}
	}
	g.refused.Add(1)
	if no.Reason == refuse.Undecided && ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	trailer, err := no.GRPC(g.config.Draw)
	to.trailer(trailer)
	return nil, err
}

// workOf is a hash of a message and of what is done with it.
func (g *Gate) workOf(c *Call) canon.Sum {
	message, ok := c.Message.(proto.Message)
	if !ok {
		return g.other()
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return g.other()
	}
	return g.hasher.Join(g.hasher.Body(bytes).Work, c.Method)
}

// requestOf is a call as a request: what says who calls, and which attempt it is, reads headers.
func requestOf(ctx context.Context, method string) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: method}, Header: http.Header{}, Body: http.NoBody}
	if from, ok := peer.FromContext(ctx); ok && from.Addr != nil {
		r.RemoteAddr = from.Addr.String()
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for name, values := range md {
		switch {
		case name == ":authority" && len(values) > 0:
			r.Host = values[0]
		case strings.HasPrefix(name, ":"), strings.HasSuffix(name, "-bin"):
		default:
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	return r.WithContext(ctx)
}

// outcomeOf is what an answer's code means.
func outcomeOf(err error) attempt.Outcome {
	switch status.Code(err) {
	case codes.OK:
		return attempt.Succeeded
	case codes.ResourceExhausted:
		return attempt.Throttled
	case codes.DeadlineExceeded:
		return attempt.TimedOut
	case codes.Canceled:
		return attempt.Canceled
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.Aborted, codes.DataLoss:
		return attempt.Failed
	default:
		// The others say that the call was wrong.
		return attempt.Rejected
	}
}
