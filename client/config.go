package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/members"
	"github.com/quorlease/quorlease/client/names"
	"github.com/quorlease/quorlease/client/session"
	"github.com/quorlease/quorlease/fsm/retry"
)

// Bounds of the configuration.
const (
	endpointsMax = members.LinksMax
	deadlineMin  = time.Millisecond
	deadlineMax  = time.Hour
	closeMax     = time.Minute
	// DefaultDeadline is for calls whose context has none.
	DefaultDeadline = time.Second
	// DefaultCloseWithin bounds Close.
	DefaultCloseWithin = 2 * time.Second
)

// Config says how a client behaves. Only Endpoints and Client are needed.
type Config struct {
	// Endpoints are addresses of nodes, "host:port", 1 to 32. One that is reachable
	// is enough: the others are found from it. Those given here are always kept, so
	// that a client finds a cluster again whose other members have all changed.
	Endpoints []string
	// Client is who the work is for, 1 to 256 bytes of UTF-8: the name that retry
	// budgets and alerts know. A request may name another one.
	Client string
	// Credentials secure the connections. Default: none, which nodes accept on
	// loopback only.
	Credentials credentials.TransportCredentials
	// Dial replaces the dialing of TCP, for tests and tunnels. Default: net.Dialer.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Direct answers, in this process, acquires that keep no record and wait in no queue;
	// everything else goes over connections. Package embedded sets it. Default: none.
	Direct session.Direct

	// Deadline is within what time a call answers whose context has no deadline,
	// 1 ms to 1 h. Default 1 s. Where nobody has answered by then the client
	// decides by itself.
	Deadline time.Duration
	// OnceOnly: an untracked acquire of which it is unknown whether it happened, as
	// when a leader dies, is decided by the client itself. Default false: it is asked
	// again and may be debited twice, so that less is admitted, never more (G4).
	OnceOnly bool

	// Fallbacks are rules for limits of which the authority has said nothing yet:
	// for a client that starts while it is away. What the authority says replaces
	// them. No limit twice.
	Fallbacks []failopen.Fallback
	// Fallback is the rule of all other limits, until the authority has said
	// something else; its Limit is not used. Default: open. Its SharePPM is also the
	// share of limits in mode share that the authority names none for.
	Fallback failopen.Fallback
	// Retries is the retry budget until the authority has said which one counts.
	// Default failopen.DefaultRetries: 3 retries, a fifth of all requests.
	Retries *retry.Rule
	// RetryTokens bounds this process's retries before anybody is asked: each costs
	// tokens, and a success (Tries) refunds some. Default: no such bound.
	RetryTokens *retry.TokenRule

	// Alerts get one alert for each incident, and one when it is over, beside Logger.
	Alerts []alert.Sink
	// Logger gets alerts as log lines, and deliveries that failed. Nothing else is
	// logged. Default: none where there are Alerts, else slog.Default(): a client that
	// decides by itself and tells nobody would be no limit at all, unnoticed.
	Logger *slog.Logger

	// CloseWithin bounds how long Close goes on giving leases back and reporting,
	// up to 1 min. Default 2 s. What it does not manage ends by itself: leases then
	// count as spent.
	CloseWithin time.Duration
}

// Validate returns all problems, each naming field, value and bound, or nil.
func (c Config) Validate() error {
	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch n := len(c.Endpoints); {
	case n == 0:
		fail("endpoints: missing: 1 to %d", endpointsMax)
	case n > endpointsMax:
		fail("endpoints: %d, more than %d", n, endpointsMax)
	}
	for i, endpoint := range c.Endpoints {
		if _, port, err := net.SplitHostPort(endpoint); err != nil || port == "" {
			fail("endpoints[%d]: %q is not host:port", i, endpoint)
		}
	}
	if c.Client == "" {
		fail("client: missing: 1 to %d bytes", names.ClientMax)
	} else if problem := names.ClientProblem(c.Client); problem != "" {
		fail("client: %s", problem)
	}
	if c.Deadline != 0 && (c.Deadline < deadlineMin || c.Deadline > deadlineMax) {
		fail("deadline: %s is out of range %s..%s", c.Deadline, deadlineMin, deadlineMax)
	}
	if c.CloseWithin < 0 || c.CloseWithin > closeMax {
		fail("close_within: %s is out of range 0..%s", c.CloseWithin, closeMax)
	}
	for i, sink := range c.Alerts {
		if sink == nil {
			fail("alerts[%d]: missing", i)
		}
	}
	if _, err := failopen.New(c.failopen()); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (c Config) failopen() failopen.Config {
	return failopen.Config{
		Fallback: c.Fallback, Static: c.Fallbacks, Retries: c.Retries, Tokens: c.RetryTokens,
		Booked: true,
	}
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	if c.CloseWithin == 0 {
		c.CloseWithin = DefaultCloseWithin
	}
	if c.Logger == nil && len(c.Alerts) == 0 {
		c.Logger = slog.Default()
	}
	if c.Logger != nil {
		c.Alerts = append(c.Alerts[:len(c.Alerts):len(c.Alerts)], alert.Log(c.Logger))
	}
	return c
}
