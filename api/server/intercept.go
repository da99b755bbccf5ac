package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/quorlease/quorlease/api/server/decode"
)

// unary lets a call in, bounds its time and says what went wrong in the words of
// the error table.
func (s *Server) unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (resp any, err error) {
	defer func() {
		if err = s.failure(info.FullMethod, recover(), err); err != nil {
			resp = nil
		}
	}()
	ctx, err = s.admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patienceOf(req, methods[info.FullMethod].patience))
		defer cancel()
	}
	return handler(ctx, req)
}

// stream is unary for streams.
func (s *Server) stream(
	srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) (err error) {
	defer func() { err = s.failure(info.FullMethod, recover(), err) }()
	ctx, err := s.admit(ss.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	return handler(srv, &identifiedStream{ss, s.codec, ctx})
}

// identifiedStream is a stream whose context knows who calls.
type identifiedStream struct {
	grpc.ServerStream
	codec *decode.Codec
	ctx   context.Context //nolint:containedctx // this is how gRPC hands a stream's context on
}

func (s *identifiedStream) Context() context.Context { return s.ctx }

// RecvMsg receives a message that could be decoded.
func (s *identifiedStream) RecvMsg(v any) error {
	err := s.ServerStream.RecvMsg(v)
	// Asked for in any case: it is kept until then.
	if wrong := s.codec.Decoded(v); err == nil {
		err = wrong
	}
	return err
}

// failure turns what a handler ended with into an error of the table. Of a bug
// the caller learns a number only; the log has the rest under it.
func (s *Server) failure(name string, panicked any, err error) error {
	if panicked == nil && err == nil {
		return nil
	}
	if panicked != nil {
		err = fmt.Errorf("panic: %v", panicked)
	}
	e := ErrorOf(err)
	if panicked == nil && e.Cause.Code != codes.Internal || e.Correlation != "" {
		return e
	}
	e = &Error{Cause: causeOf(errBug), Correlation: correlation()}
	e.Message = "internal error " + e.Correlation
	facts := []any{"method", name, "correlation", e.Correlation, "err", err}
	if panicked != nil {
		facts = append(facts, "stack", string(debug.Stack()))
	}
	s.log.Error("call failed", facts...)
	return e
}

// correlation draws 64 bits.
func correlation() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(id[:])
}

// Call answers a unary call that did not come through gRPC, in the same way and
// under the same rights. ctx carries the caller as a peer.Peer; decode fills in
// the request. The error is always an *Error.
func (s *Server) Call(ctx context.Context, name string, decode func(any) error) (any, error) {
	c, found := s.calls[name]
	if !found {
		return nil, s.failure(name, nil, fmt.Errorf("%w: %q", ErrPath, name))
	}
	// Whoever may not call has nothing read that it sent.
	if err := s.Allow(ctx, name); err != nil {
		return nil, err
	}
	if !s.begin() {
		return nil, s.failure(name, nil, errOverloadedStreams)
	}
	defer s.end()
	resp, err := c.handler(c.service, ctx, decode, s.unary)
	if err != nil {
		// What decode said has not been through the interceptor.
		return nil, s.failure(name, nil, err)
	}
	return resp, nil
}

// Allow lets the caller in ctx use what is served without gRPC, or says why not.
func (s *Server) Allow(ctx context.Context, name string) error {
	_, err := s.admit(ctx, name)
	return s.failure(name, nil, err)
}

// checked asks the codec about every message before it is used.
func (s *Server) checked(handler grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
		return handler(srv, ctx, func(req any) error {
			if err := decode(req); err != nil {
				return err
			}
			if err := s.codec.Decoded(req); err != nil {
				return ErrorOf(err)
			}
			return nil
		}, ic)
	}
}
