package contention

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/echo"
	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
)

const (
	limitName  = "bench-contention"
	dimension  = "requests"
	clientName = "bench"
)

func keyName(i int) string { return "key-" + strconv.Itoa(i) }

func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = keyName(i)
	}
	return names
}

// authority is the side that is measured.
type authority struct {
	// newAsker makes one caller's way to it, end closes what they share.
	newAsker func() load.Asker
	end      func() error
	// nodes is nil where they are not of this run; steady says that none of them is
	// killed, so that their processor time can be added up.
	nodes  *bench.Nodes
	steady bool
}

// newAuthority is the way that the path says.
func newAuthority(c *Config, endpoints []string) (*authority, error) {
	switch c.Path {
	case Client:
		return throughClient(c, endpoints)
	case Limiter:
		return throughLimiters(c, endpoints)
	case Unary, Session:
	}
	l := link.New(link.Config{
		Endpoints: endpoints, Session: c.Path == Session, Timeout: c.Timeout, Client: clientName,
		Limit: limitName, Dimension: dimension, Keys: keyNames(c.Keys),
	})
	return &authority{newAsker: l.Asker, end: l.Close}, nil
}

func (a *authority) Asker(int) (load.Asker, error) { return a.newAsker(), nil }

func (a *authority) CPU() (time.Duration, error) {
	if a.nodes == nil || !a.steady {
		return 0, load.ErrUnknown
	}
	var sum time.Duration
	for i := range a.nodes.Len() {
		used, err := a.nodes.CPU(i)
		if err != nil {
			return 0, errors.Join(load.ErrUnknown, err)
		}
		sum += used
	}
	return sum, nil
}

// echoSide is the bare gRPC echo, in a process of its own.
type echoSide struct {
	path   Path
	server *bench.Child
	conn   *grpc.ClientConn
	stream *echo.Stream
}

// startEcho starts the process and connects as the path does.
func startEcho(ctx context.Context, c *Config) (*echoSide, error) {
	log := c.NodeLog
	if log == nil {
		log = io.Discard
	}
	server, err := bench.StartChild(log, c.Binary, "bench", "echo-server")
	if err != nil {
		return nil, fmt.Errorf("start echo: %w", err)
	}
	e := &echoSide{path: c.Path, server: server}
	if e.conn, err = bench.Dial(server.Address()); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if c.Path != Unary {
		if e.stream, err = echo.Open(ctx, e.conn); err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	return e, nil
}

func (e *echoSide) close() error {
	if e.stream != nil {
		e.stream.Close()
	}
	var err error
	if e.conn != nil {
		err = e.conn.Close()
	}
	return errors.Join(err, e.server.Close())
}

func (e *echoSide) Asker(int) (load.Asker, error) {
	if e.path == Unary {
		return &unaryEcho{conn: e.conn}, nil
	}
	return &streamEcho{caller: e.stream.NewCaller()}, nil
}

func (e *echoSide) CPU() (time.Duration, error) { return e.server.CPU() }

type unaryEcho struct {
	conn *grpc.ClientConn
	item echo.Item
}

func (u *unaryEcho) Ask(ctx context.Context, _ int) (load.Answer, error) {
	err := echo.Unary(ctx, u.conn, &u.item)
	return load.Answer{Granted: err == nil}, err
}

type streamEcho struct {
	caller *echo.Caller
	item   echo.Item
}

func (s *streamEcho) Ask(ctx context.Context, _ int) (load.Answer, error) {
	err := s.caller.Do(ctx, s.item)
	return load.Answer{Granted: err == nil}, err
}
