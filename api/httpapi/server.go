package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/peer"

	"github.com/quorlease/quorlease/api/capped"
	"github.com/quorlease/quorlease/api/server"
)

// Bounds of one connection.
const (
	headersMax    = 16 << 10
	headersSlack  = 4 << 10 // what net/http lets through above its MaxHeaderBytes
	headersWithin = 5 * time.Second
	requestWithin = 10 * time.Second
	answerWithin  = 30 * time.Second
	idleMax       = time.Minute
)

// Config is what the HTTP server needs and may use.
type Config struct {
	// API answers. Required.
	API *server.Server
	// Gatherer has the metrics. Required.
	Gatherer prometheus.Gatherer
	// Hosts are the names under which this node is called, without a port, beside
	// localhost and addresses that are numbers. Any other Host is refused: it is
	// that of a page which made its own name point here.
	Hosts []string
	// ConnectionsMax bounds the connections that are open at once, at least 1. One
	// too many closes the oldest without a request, or else is closed itself.
	ConnectionsMax int
	// Logger gets what the HTTP library complains of, at debug level. Nil means
	// none.
	Logger hclog.Logger
}

// DefaultConfig is complete but for API and Gatherer.
func DefaultConfig() Config { return Config{ConnectionsMax: 1000} }

// Validate returns all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if c.API == nil {
		errs = append(errs, errors.New("API: missing"))
	}
	if c.Gatherer == nil {
		errs = append(errs, errors.New("gatherer: missing"))
	}
	if c.ConnectionsMax < 1 {
		errs = append(errs, fmt.Errorf("connections max %d: must be at least 1", c.ConnectionsMax))
	}
	return errors.Join(errs...)
}

// New makes a server with all its bounds, for the caller to Serve and Shutdown.
// Streams of events end when the API drains; drain it before Shutdown.
func New(config Config) (*http.Server, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("http server: %w", err)
	}
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	log := config.Logger.Named("http")
	h := &handler{api: config.API, hosts: allowedHosts(config.Hosts)}
	h.routes = h.table(config.Gatherer)
	maps.Copy(h.routes, h.pages())
	return &http.Server{
		Handler:           h.guarded(),
		ReadHeaderTimeout: headersWithin,
		ReadTimeout:       requestWithin,
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleMax,
		MaxHeaderBytes:    headersMax - headersSlack,
		ConnState:         capped.States(config.ConnectionsMax),
		ErrorLog:          log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}, nil
}

// handler answers requests.
type handler struct {
	api    *server.Server
	hosts  map[string]bool
	routes map[string]methods
}

// methods are the ways to use one path.
type methods map[string]http.HandlerFunc

// caller is the request's context with who sent it. Headers that a proxy may
// have set prove nothing and are not looked at.
func caller(r *http.Request) *http.Request {
	p := &peer.Peer{}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		p.Addr = net.TCPAddrFromAddrPort(from)
	}
	return r.WithContext(peer.NewContext(r.Context(), p))
}
