package members

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/credentials"

	"github.com/quorlease/quorlease/client/session"
)

// LinksMax is how many nodes are known at once, those that were configured and
// those that were learnt: a wrong answer must not make a client dial the world.
const LinksMax = 32

// addressMax and clientMax bound an address and a client's name, in bytes.
const (
	addressMax = 256
	clientMax  = 256
)

// Config says where the cluster is and how patient to be.
type Config struct {
	// Endpoints are client addresses of some nodes, "host:port", 1 to LinksMax. The
	// others are learnt. These are never forgotten.
	Endpoints []string
	// Client is who the work of items is for that name no client, at most 256 bytes of
	// valid UTF-8 without control characters.
	Client string
	// SessionID is 32 lower-case hex digits, drawn when the process started.
	SessionID string
	// Credentials are for TLS. Nil means none: bytes travel in the clear.
	Credentials credentials.TransportCredentials
	// Dial connects; it must return soon after ctx ends. Nil means TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Direct answers acquires in this process, as session.Hello says. Nil: none are.
	Direct session.Direct
	// Changed is told of every change of State, one at a time and in order; where it
	// is slow it is told of the last one only. It may call anything but Close. Nil:
	// nobody is told.
	Changed func(State)

	// ConnectMax is how long it may take to connect to a node and to open a session,
	// positive.
	ConnectMax time.Duration
	// BackoffMin and BackoffMax are the longest pause before the first, and before
	// any, attempt to connect again. The pause is drawn between nothing and that.
	BackoffMin, BackoffMax time.Duration
	// ProbeEvery is how often a node is asked for its status while nothing fails,
	// and ProbeSoon while something does; up to 2.5 times and twice as long, by
	// chance. Both positive.
	ProbeEvery, ProbeSoon time.Duration
	// ProbeMax is how long a node may take to answer, before it counts as one that
	// can't be reached. Positive.
	ProbeMax time.Duration
}

// DefaultConfig is complete but for Endpoints, Client and SessionID. A node that
// vanishes without a word is noticed within half a second of the first call that
// misses it, and within 5.5 s where nobody calls.
func DefaultConfig() Config {
	return Config{
		ConnectMax: time.Second,
		BackoffMin: 50 * time.Millisecond, BackoffMax: time.Second,
		ProbeEvery: 2 * time.Second, ProbeSoon: 250 * time.Millisecond, ProbeMax: 500 * time.Millisecond,
	}
}

// Validate returns all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if n := len(c.Endpoints); n < 1 || n > LinksMax {
		errs = append(errs, fmt.Errorf("endpoints: %d addresses, must be 1 to %d", n, LinksMax))
	}
	for i, address := range c.Endpoints {
		if problem := addressProblem(address); problem != "" {
			errs = append(errs, fmt.Errorf("endpoints[%d]: %q %s", i, address, problem))
		}
	}
	id, err := hex.DecodeString(c.SessionID)
	if err != nil || len(id) != 16 || strings.ToLower(c.SessionID) != c.SessionID {
		errs = append(errs, fmt.Errorf("session id: %q must be 32 lower-case hex digits", c.SessionID))
	}
	switch {
	case len(c.Client) > clientMax:
		errs = append(errs, fmt.Errorf("client: has %d bytes, more than %d", len(c.Client), clientMax))
	case !utf8.ValidString(c.Client) || strings.ContainsFunc(c.Client, unicode.IsControl):
		errs = append(errs, fmt.Errorf("client: %q must be valid UTF-8 without control characters", c.Client))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"connect max", c.ConnectMax},
		{"backoff min", c.BackoffMin},
		{"backoff max", c.BackoffMax},
		{"probe every", c.ProbeEvery},
		{"probe soon", c.ProbeSoon},
		{"probe max", c.ProbeMax},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: %v must be positive", d.name, d.value))
		}
	}
	if c.BackoffMax < c.BackoffMin {
		errs = append(errs, fmt.Errorf("backoff max: %v is less than backoff min, %v", c.BackoffMax, c.BackoffMin))
	}
	return errors.Join(errs...)
}

// addressProblem says what is wrong with an address; empty where nothing is.
func addressProblem(address string) string {
	if len(address) > addressMax {
		return fmt.Sprintf("has %d bytes, more than %d", len(address), addressMax)
	}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return "must be host:port"
	}
	return ""
}
