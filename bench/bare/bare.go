// Package bare loads the bare gRPC echo, in a process of its own.
package bare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/echo"
	"github.com/quorlease/quorlease/bench/load"
)

// Server is the process.
type Server struct{ child *bench.Child }

// Start starts it from a program whose subcommand `bench echo-server` it is. Nil log:
// what it prints is discarded.
func Start(program string, log io.Writer) (*Server, error) {
	if log == nil {
		log = io.Discard
	}
	child, err := bench.StartChild(log, program, "bench", "echo-server")
	if err != nil {
		return nil, fmt.Errorf("start echo: %w", err)
	}
	return &Server{child}, nil
}

// CPU is its processor time.
func (s *Server) CPU() (time.Duration, error) { return s.child.CPU() }

// Close ends it.
func (s *Server) Close() error { return s.child.Close() }

// Door is one connection that all callers share, and the stream on it.
type Door struct {
	conn   *grpc.ClientConn
	stream *echo.Stream
}

// Open connects. With a stream whoever waits travels in one message; it lives as long
// as ctx.
func (s *Server) Open(ctx context.Context, stream bool) (*Door, error) {
	conn, err := bench.Dial(s.child.Address())
	if err != nil {
		return nil, err
	}
	d := &Door{conn: conn}
	if stream {
		if d.stream, err = echo.Open(ctx, conn); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// Close ends the connection.
func (d *Door) Close() error {
	if d.stream != nil {
		d.stream.Close()
	}
	return d.conn.Close()
}

// Asker is that of one more caller.
func (d *Door) Asker(int) (load.Asker, error) {
	if d.stream == nil {
		return &unary{conn: d.conn}, nil
	}
	return &streamed{caller: d.stream.NewCaller()}, nil
}

type unary struct {
	conn *grpc.ClientConn
	item echo.Item
}

// Ask asks in a call of its own.
func (u *unary) Ask(ctx context.Context, _ int) (load.Answer, error) {
	err := echo.Unary(ctx, u.conn, &u.item)
	return load.Answer{Granted: err == nil}, err
}

type streamed struct {
	caller *echo.Caller
	item   echo.Item
}

// Ask asks on the stream.
func (s *streamed) Ask(ctx context.Context, _ int) (load.Answer, error) {
	err := s.caller.Do(ctx, s.item)
	return load.Answer{Granted: err == nil}, err
}
