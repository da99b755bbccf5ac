package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/charged"
	"github.com/quorlease/quorlease/client/clock"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/held"
	"github.com/quorlease/quorlease/client/members"
	"github.com/quorlease/quorlease/client/refresh"
	"github.com/quorlease/quorlease/client/report"
	"github.com/quorlease/quorlease/client/session"
)

// ErrClosed: the client was closed.
var ErrClosed = authority.ErrClosed

// ErrUnanswered: no node has answered in time. What was asked may have happened
// or not; where it has a lease id it may be repeated as it is (G4).
var ErrUnanswered = authority.ErrUnanswered

// Client asks an authority and decides where it does not answer. It is safe for
// concurrent use. Make one for a process, with New.
type Client struct {
	config    Config
	sessionID string
	authority *authority.Authority
	machine   *failopen.Machine
	notifier  *alert.Notifier
	clock     *clock.Clock
	reporter  *report.Reporter
	refresher *refresh.Refresher
	charged   charged.Book
	held      *held.Book

	decided [Local + 1]decided

	stop    context.CancelFunc
	joined  sync.WaitGroup
	closing sync.Once
	failure error

	mu struct {
		sync.Mutex
		// limiters are those that are open, nil once the client is closed.
		limiters map[*Limiter]struct{}
	}
}

// New returns a client that has asked nobody yet: it dials in the background and
// never waits. The error names everything that is wrong with the configuration.
func New(config Config) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("client configuration: %w", err)
	}
	config = config.withDefaults()
	machine, err := failopen.New(config.failopen())
	if err != nil {
		return nil, fmt.Errorf("client configuration: %w", err)
	}
	c := &Client{config: config, sessionID: newID(), machine: machine, clock: clock.New(), held: held.New()}
	c.mu.limiters = make(map[*Limiter]struct{})
	c.notifier = alert.New(alert.Config{Sinks: config.Alerts, OnFailure: c.undelivered})
	c.authority, err = authority.New(authority.Config{
		Members: c.membersConfig(), Machine: machine, Notify: c.notifier.Notify, Over: func() { c.reporter.Owe() },
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("client configuration: %w", err), c.notifier.Close(context.Background()))
	}
	who := session.Hello{Client: config.Client, SessionID: c.sessionID}
	c.reporter = report.New(machine, c.authority.Members(), who, newID)
	c.refresher = refresh.New(machine, c.authority.Members())
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.joined.Go(func() { c.authority.Run(ctx) })
	c.joined.Go(func() { c.reporter.Run(ctx) })
	c.joined.Go(func() { c.refresher.Run(ctx) })
	return c, nil
}

func (c *Client) membersConfig() members.Config {
	m := members.DefaultConfig()
	m.Endpoints, m.Dial, m.Credentials = c.config.Endpoints, c.config.Dial, c.config.Credentials
	m.Client, m.SessionID, m.Direct = c.config.Client, c.sessionID, c.config.Direct
	return m
}

// Tries is for work that asks nobody because it spends permits, and for saying how
// work ended.
func (c *Client) Tries() *report.Book { return c.reporter.Tries() }

// TriesOf is Tries for work that is done for somebody else, such as a client of a gateway:
// his retry budget, and reports under his name. Some 1,000 names are kept, those that were
// used last: ask for it anew for each piece of work. An empty name is Config.Client.
func (c *Client) TriesOf(client string) *report.Book { return c.reporter.TriesOf(client) }

// undelivered logs that an alert did not arrive.
func (c *Client) undelivered(f alert.Failure) {
	if c.config.Logger != nil {
		c.config.Logger.Warn("alert not delivered",
			"sink", f.Sink, "kind", f.Alert.Kind, "err", f.Err, "given_up", f.GivenUp)
	}
}

// Close gives back what limiters hold, reports what was admitted locally and
// delivers alerts that wait, within Config.CloseWithin, and ends every goroutine.
// Calls under way end with ErrClosed. It is idempotent.
func (c *Client) Close() error {
	c.closing.Do(func() {
		within, cancel := context.WithTimeout(context.Background(), c.config.CloseWithin)
		defer cancel()
		c.closeLimiters(within)
		c.authority.Stop()
		c.stop()
		c.joined.Wait()
		if !c.machine.Away() {
			c.reporter.Once(within)
			c.refresher.Leave(within)
		}
		c.failure = errors.Join(c.authority.Close(), c.notifier.Close(within))
	})
	return c.failure
}

// bounded gives a call the configured deadline, beside what it may wait in a queue,
// where it has none, and keeps a part of any for deciding locally: the answer is to
// be there in time.
func (c *Client) bounded(ctx context.Context, waits time.Duration) (context.Context, context.CancelFunc) {
	now := time.Now()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = now.Add(waits + c.config.Deadline)
	}
	left := deadline.Sub(now)
	return context.WithDeadline(ctx, deadline.Add(-min(left/20, 5*time.Millisecond)))
}

// wake leaves a wish in a channel that holds one.
func wake(wish chan struct{}) {
	select {
	case wish <- struct{}{}:
	default:
	}
}
