package contention

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/bare"
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
	*bare.Door
	server *bare.Server
}

// startEcho starts the process and connects as the path does.
func startEcho(ctx context.Context, c *Config) (*echoSide, error) {
	server, err := bare.Start(c.Binary, c.NodeLog)
	if err != nil {
		return nil, err
	}
	door, err := server.Open(ctx, c.Path != Unary)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return &echoSide{door, server}, nil
}

// Close ends both.
func (e *echoSide) Close() error { return errors.Join(e.Door.Close(), e.server.Close()) }

// CPU is the process's.
func (e *echoSide) CPU() (time.Duration, error) { return e.server.CPU() }
