package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/coalesce"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/internal/lately"
	"github.com/quorlease/quorlease/client/gateway/internal/out"
	"github.com/quorlease/quorlease/client/gateway/internal/room"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/replay"
	"github.com/quorlease/quorlease/client/gateway/shadow"
	"github.com/quorlease/quorlease/client/gateway/told"
)

// Authority decides, and hears what providers answer. *client.Client is one.
type Authority interface {
	charge.Authority
	told.Feedbacker
	told.Asker
}

// Gateway is an http.Handler in front of providers. It is safe for concurrent use. Make
// one with New.
type Gateway struct {
	config Config
	began  time.Time
	// live are the settings in force, which Reload replaces, one after the other.
	live      atomic.Pointer[settings]
	reloading sync.Mutex
	attempts  *attempt.Table
	hasher    *canon.Hasher
	board     *circuit.Board
	group     *coalesce.Group[out.Head]
	estimates *estimate.Corrections
	desk      *charge.Desk
	teller    *told.Teller
	// prober is nil where each gateway probes for itself.
	prober *told.Prober
	// closers are the parts that run, in the order in which they were started.
	closers  []io.Closer
	upstream http.RoundTripper
	// own is upstream where that was made here.
	own *http.Transport
	// mirror sends by upstream what it does not only imagine.
	mirror *shadow.Mirror
	rooms  *room.Rooms
	// replays are the answers of requests with idempotency keys.
	replays *replay.Store
	book    fallback.Book
	counts  counts
	said    lately.Seldom
	// unmatched are requests that no limit fits.
	unmatched lately.Unmatched

	// life ends with Close, and serving are the requests that are being answered.
	life    context.Context //nolint:containedctx // the life of what is forwarded, not of a call
	end     context.CancelFunc
	serving sync.WaitGroup
	mu      struct {
		sync.Mutex
		closed bool
	}
}

// counts are what Stats says, as they grow.
type counts struct {
	requests, forwarded, retried, exhausted, repeated, unlimited, unread, gone, cut atomic.Uint64

	refused [reasons]atomic.Uint64
	answers [classes]atomic.Uint64
}

// Stats are what a gateway has done since it was made.
type Stats struct {
	// Requests counts what came in, and Refused what was refused of it in the gateway's words:
	// by itself, or by a provider to the last. Refusals are those by refuse.Reason.
	Requests, Refused uint64
	Refusals          [reasons]uint64
	// Answers counts what providers answered, tries included, by provider.Class.
	Answers [classes]uint64
	// Repeated counts requests whose same work was in flight and that were not to share its
	// answer. Those that were and could not are Shared.Duplicates.
	Repeated uint64
	// Forwarded counts what was sent to providers, tries included; Retried the tries after the
	// first; Exhausted the requests that were given up: their tries, their time, or the tokens
	// that pay for retries were used up (S3-18).
	Forwarded, Retried, Exhausted uint64
	// Unlimited counts what no limit fits, tries included.
	Unlimited uint64
	// Unread counts bodies for which there was no room, Gone clients that did not wait for
	// their answer, Cut answers that ended before their end.
	Unread, Gone, Cut uint64
	// Held is how many bytes of bodies are held.
	Held int64

	Attempts attempt.Stats
	Circuits circuit.Stats
	Shared   coalesce.Stats
	Charges  charge.Stats
	Told     told.Stats
	// Replays are what became of idempotency keys.
	Replays replay.Stats
	// Money is what calls have cost whose deployment has a price.
	Money fallback.Stats
	// Shadow is what would have become of requests that were only forwarded.
	Shadow shadow.Stats
	// Estimates is how far estimates were off.
	Estimates estimate.Errors
}

// New returns a gateway. The error names everything that is wrong with the configuration.
func New(c Config) (*Gateway, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Draw == nil {
		c.Draw = rand.Int64N
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	g := &Gateway{
		config: c, began: time.Now(), upstream: c.Transport, rooms: room.New(c.BodiesMax, c.BodiesClientMax),
	}
	g.life, g.end = context.WithCancel(context.Background())
	if g.upstream == nil {
		g.own = newTransport()
		g.upstream = g.own
	}
	g.mirror = shadow.New(shadow.Config{
		Next: g.upstream, Logger: c.Logger,
		Proxy: httputil.ReverseProxy{ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug)},
	})
	g.upstream = g.mirror
	if err := g.assemble(); err != nil {
		_ = g.Close()
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return g, nil
}

// assemble makes the parts.
func (g *Gateway) assemble() error {
	c := &g.config
	now, err := settle(c, nil)
	if err != nil {
		return err
	}
	g.live.Store(now)
	if g.attempts, err = attempt.NewTable(c.Attempts); err != nil {
		return err
	}
	if g.hasher, err = canon.New(c.Hashes); err != nil {
		return err
	}
	if g.estimates, err = estimate.NewCorrections(estimate.CorrectionsOptions{}); err != nil {
		return err
	}
	if g.replays, err = replay.New(c.Replays); err != nil {
		return err
	}
	c.Shared.Transient = isTransient
	c.Told.Authority, c.Told.Logger = c.Authority, c.Logger
	if g.teller, err = told.New(c.Told); err != nil {
		return err
	}
	g.closers = append(g.closers, g.teller)
	c.Circuits.Shared = g.teller
	if c.Probes != "" {
		if g.prober, err = told.NewProber(told.ProberConfig{
			Authority: c.Authority, Limit: c.Probes, Shared: g.teller,
		}); err != nil {
			return err
		}
		g.closers = append(g.closers, g.prober)
		c.Circuits.Shared, c.Circuits.Prober = g.prober, g.prober
	}
	if g.board, err = circuit.New(c.Circuits); err != nil {
		return err
	}
	c.Charges.Authority = c.Authority
	if g.desk, err = charge.New(c.Charges); err != nil {
		return err
	}
	g.closers = append(g.closers, g.desk)
	g.group, err = coalesce.New[out.Head](c.Shared)
	return err
}

// Close ends what is being forwarded, settles it, and joins every goroutine. What comes
// after that is refused. It is idempotent.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.mu.closed = true
	g.mu.Unlock()
	g.end()
	g.serving.Wait()
	if g.group != nil {
		g.group.Close()
	}
	if g.replays != nil {
		g.replays.Close()
	}
	var failed []error
	for _, part := range slices.Backward(g.closers) {
		failed = append(failed, part.Close())
	}
	if g.own != nil {
		g.own.CloseIdleConnections()
	}
	return errors.Join(failed...)
}

// Cleared says that somebody has seen to a spend cap of a deployment of which the authority
// does not know: work is sent there again. It is false where there is no such deployment, and no
// such spend cap either.
func (g *Gateway) Cleared(deployment string) bool {
	is := func(d Deployment) bool { return d.Name == deployment }
	return g.teller.Cleared(deployment) || slices.ContainsFunc(g.live.Load().Deployments, is)
}

// Stats are the figures now.
func (g *Gateway) Stats() Stats {
	n := &g.counts
	s := Stats{
		Requests: n.requests.Load(), Repeated: n.repeated.Load(),
		Forwarded: n.forwarded.Load(), Retried: n.retried.Load(), Exhausted: n.exhausted.Load(),
		Unlimited: n.unlimited.Load(),
		Unread:    n.unread.Load(), Gone: n.gone.Load(), Cut: n.cut.Load(), Held: g.rooms.Held(),
		Attempts: g.attempts.Stats(), Circuits: g.board.Stats(), Shared: g.group.Stats(),
		Charges: g.desk.Stats(), Told: g.teller.Stats(), Shadow: g.mirror.Stats(),
		Estimates: g.estimates.Errors(), Replays: g.replays.Stats(), Money: g.book.Stats(),
	}
	s.Refused = counted(s.Refusals[:], n.refused[:])
	counted(s.Answers[:], n.answers[:])
	return s
}

// now is the time that the parts know.
func (g *Gateway) now() time.Duration { return time.Since(g.began) }

// newTransport keeps enough connections for everybody who asks at once.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4096,
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 10 * time.Minute,
		DisableCompression:    true,
		// A connection that is dead without a word would swallow what is sent on it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// find is the deployment that takes a path and the model that a body names, and what the
// path is for it.
func (s *settings) find(path, model string) (*Deployment, route, bool) {
	var open *Deployment
	var fits route
	look := routing{path: path}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		match, ok := look.at(d.Provider)
		if !ok {
			continue
		}
		r := route{match, model}
		if match.Deployment != "" {
			r.model = match.Deployment
		}
		switch {
		case slices.Contains(d.Models, r.model):
			return d, r, true
		case len(d.Models) == 0 && open == nil:
			open, fits = d, r
		}
	}
	return open, fits, open != nil
}

// routing is a path while its route is looked for: once in a table that several deployments in
// a row have.
type routing struct {
	path  string
	last  *provider.Table
	match provider.Match
	ok    bool
}

func (r *routing) at(t *provider.Table) (provider.Match, bool) {
	if t != r.last {
		r.last = t
		r.match, r.ok = t.Route(r.path)
	}
	return r.match, r.ok
}
