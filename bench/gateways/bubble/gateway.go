package bubble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/file"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// errDead is what a program sees of a gateway that was killed.
var errDead = errors.New("the gateway is dead")

// member is one gateway with its client.
type member struct {
	client  *client.Client
	gateway *gateway.Gateway
	// life ends when it is killed.
	life context.Context //nolint:containedctx // that of a process, not of a call
	kill context.CancelFunc
	once sync.Once
}

// join starts a gateway as a process would be: from its file.
func (s *Stage) join(number int, text string) (*member, error) {
	parsed, err := file.Parse("gateway.yaml", []byte(text), file.Secrets{LookupEnv: key})
	if err != nil {
		return nil, fmt.Errorf("read a gateway's file: %w", err)
	}
	parsed.Who.Loopback = true
	book, err := who.New(parsed.Who)
	if err != nil {
		return nil, fmt.Errorf("read a gateway's clients: %w", err)
	}
	m := &member{}
	m.life, m.kill = context.WithCancel(context.Background())
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	m.client, err = client.New(client.Config{
		Endpoints: s.endpoints(), Client: fmt.Sprintf("gateway-%d", number),
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if m.life.Err() != nil {
				return nil, errDead
			}
			return s.dial(ctx, address, number)
		},
		Alerts: []alert.Sink{alert.Func(s.alerted)}, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("start a gateway's client: %w", err)
	}
	config := parsed.Gateway
	config.Authority, config.Who, config.Logger = m.client, book, logger
	config.Told.OnSpendCap = s.capped
	config.Transport = &transport{to: s.provider, life: m.life, calls: &s.calls}
	if m.gateway, err = gateway.New(config); err != nil {
		return nil, errors.Join(fmt.Errorf("start a gateway: %w", err), m.client.Close())
	}
	return m, nil
}

// key is the provider's, which does not look at it.
func key(name string) (string, bool) { return "simulated", name == gateways.KeyEnv }

// close ends it in good order, or cleans up what a dead one has left in the process.
func (m *member) close() (err error) {
	m.once.Do(func() {
		err = errors.Join(m.gateway.Close(), m.client.Close())
		m.kill()
	})
	return err
}

// send is one request, from a program on the same machine.
func (m *member) send(ctx context.Context, r gateways.Request) (gateways.Answer, error) {
	if m.life.Err() != nil {
		return gateways.Answer{}, errDead
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.life, cancel)() //nolint:contextcheck // the process ends what it answers
	request, err := incoming(ctx, r)
	if err != nil {
		return gateways.Answer{}, err
	}
	began, w := time.Now(), newRecorder()
	whole := w.serve(m.gateway, request)
	switch {
	case m.life.Err() != nil:
		return gateways.Answer{}, errDead
	case !whole:
		return gateways.Answer{}, errCut
	}
	return gateways.Answer{
		Status: w.status, Header: w.sent, Body: w.body.Bytes(), Took: time.Since(began),
	}, nil
}

var errCut = errors.New("the answer ended before its end")
