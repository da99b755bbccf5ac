package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/test/bufconn"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
)

// Config says where an authority keeps what it knows. Only Dir is needed.
type Config struct {
	// Dir holds everything that must survive. It is made where it is missing, and belongs to one
	// process at a time.
	Dir string
	// Limits is the path of a limits file, which is all that counts: what it does not name is
	// deleted. Empty: the limits are those that Dir has, none where it is new.
	Limits string
	// Listen is where commands may ask over gRPC, and HTTP where browsers find the page and
	// scrapers the metrics: host:port on loopback, port 0 for a free one. Empty: nobody from
	// outside of the process can.
	Listen, HTTP string
	// ID is the name of the node, as in cluster.Config. A directory keeps the one that it was made
	// with. Default: embedded.
	ID string
	// MinFreeBytes is the free space below which nothing more is written, as in cluster.Config:
	// what needs the log is then refused as DISK_LOW. Default: 5 % of the disk, at least 1 GiB
	// where that is larger than 20 GiB.
	MinFreeBytes int64
	// Version is the program's, shown beside the node.
	Version string
	// Logger receives the node's log. Nil: nothing is logged.
	Logger hclog.Logger
	// Wall is the wall clock, which takes part in deciding calendar windows and nothing else. Nil:
	// the machine's. Tests inject theirs.
	Wall func() time.Time
}

// Authority is a node in this process. It is safe for concurrent use.
type Authority struct {
	config   Config
	node     *cluster.Node
	api      *server.Server
	registry *prometheus.Registry
	// inside is where clients of this process connect.
	inside *bufconn.Listener
	// address is the name under which they do; outside and page are nil where nobody else may.
	address       string
	outside, page net.Listener
	http          *http.Server
	joined        sync.WaitGroup
	closing       sync.Once
	failure       error
}

const (
	// idDefault is the name of a node that has no other.
	idDefault = "embedded"
	// pipeBytes is what a connection inside of the process holds, in bytes.
	pipeBytes = 64 << 10
	// readyStep is how often it is looked whether the node leads.
	readyStep = 5 * time.Millisecond
	// httpDrain is how long questions of browsers may take to end.
	httpDrain = time.Second
)

// Open opens or makes the directory, waits until the node decides, which takes about a second,
// and applies the limits: all of the file or nothing. ctx bounds the start only. The error is one
// that names the directory, the address or the place in the file; nothing is left open then.
// Close releases everything.
func Open(ctx context.Context, config Config) (*Authority, error) {
	if config.Dir == "" {
		return nil, errors.New("open embedded authority: dir is empty: name a directory")
	}
	if config.ID == "" {
		config.ID = idDefault
	}
	// Read before anything is made, so that a mistake in the file costs nothing.
	limits, err := readLimits(config.Limits)
	if err != nil {
		return nil, fmt.Errorf("open embedded authority: %w", err)
	}
	a := &Authority{config: config, inside: bufconn.Listen(pipeBytes), registry: prometheus.NewRegistry()}
	if err := a.open(ctx, limits); err != nil {
		//nolint:contextcheck // closing has a deadline of its own, whatever ended the start
		return nil, fmt.Errorf("open embedded authority in %s: %w", config.Dir, errors.Join(err, a.Close()))
	}
	return a, nil
}

func (a *Authority) open(ctx context.Context, limits *quorleasev1.LimitsApplyRequest) error {
	if err := a.listen(ctx); err != nil {
		return err
	}
	c := cluster.DefaultConfig()
	c.ID, c.DataDir, c.BootstrapExpect, c.Version = a.config.ID, a.config.Dir, 1, a.config.Version
	c.Peer, c.Network = peerAddress, alone()
	c.AdvertiseGRPC, c.AdvertiseHTTP = a.address, name(a.page)
	c.MinFreeBytes, c.Logger, c.Registerer, c.Wall = a.config.MinFreeBytes, a.config.Logger, a.registry, a.config.Wall
	var err error
	if a.node, err = cluster.Open(ctx, c); err != nil {
		return err
	}
	if err := a.serve(); err != nil {
		return err
	}
	if err := a.until(ctx, a.node.Leads); err != nil {
		return err
	}
	if limits == nil {
		// Nothing changes by it, and it shows that the log can be written.
		limits = &quorleasev1.LimitsApplyRequest{}
	}
	if _, err = a.apply(ctx, limits); err != nil {
		return err
	}
	return a.until(ctx, a.api.Ready)
}

// until waits for what the node comes to by itself.
func (a *Authority) until(ctx context.Context, holds func() bool) error {
	step := time.NewTicker(readyStep)
	defer step.Stop()
	for !holds() {
		select {
		case <-step.C:
		case <-a.node.Done():
			return a.node.Err()
		case <-ctx.Done():
			return fmt.Errorf("wait until it decides: %w", ctx.Err())
		}
	}
	return nil
}

// Done is closed when the node has stopped: by Close, or by itself to protect its data, as Err
// says. Clients decide by themselves from then on, and say so.
func (a *Authority) Done() <-chan struct{} { return a.node.Done() }

// Err is why the node stopped by itself, nil where it did not.
func (a *Authority) Err() error { return a.node.Err() }

// Node is the node, for its events and what else an operator may want to see. It is the
// Authority's and must not be closed.
func (a *Authority) Node() *cluster.Node { return a.node }

// Gatherer has the metrics of the node.
func (a *Authority) Gatherer() prometheus.Gatherer { return a.registry }

// Addr and HTTPAddr are where it listens for others, empty where it does not.
func (a *Authority) Addr() string { return addr(a.outside) }

// HTTPAddr is as Addr.
func (a *Authority) HTTPAddr() string { return addr(a.page) }

// Close gives back what the node holds, and ends every goroutine. Close the clients before: those
// that are left decide by themselves from then on. It is idempotent.
func (a *Authority) Close() error {
	a.closing.Do(func() { a.failure = a.close() })
	return a.failure
}

func (a *Authority) close() error {
	var failed []error
	if a.api != nil {
		a.api.Drain()
	}
	if a.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), httpDrain)
		defer cancel()
		if a.http.Shutdown(ctx) != nil {
			// Whoever still reads a stream of events is cut off.
			_ = a.http.Close()
		}
	}
	if a.api != nil {
		failed = append(failed, a.api.Close())
	}
	if a.node != nil {
		failed = append(failed, a.node.Close())
	}
	_ = a.inside.Close()
	for _, l := range []net.Listener{a.outside, a.page} {
		if l != nil {
			// What served it has closed it already.
			_ = l.Close()
		}
	}
	a.joined.Wait()
	return errors.Join(failed...)
}
