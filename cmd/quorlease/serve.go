package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/api/httpapi"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cmd/quorlease/alarm"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
)

const serveLong = `Run one node until it is told to stop (SIGINT, SIGTERM). It logs to standard
error and listens for clients (--grpc), other nodes (--peer) and HTTP (--http).

Every setting can come from the command line, from the environment as
QUORLEASE_ and its name in capitals, or from a YAML file by its name, in this
order of precedence.

It collects garbage when the heap has grown fivefold, or to 2 GiB; GOGC and
GOMEMLIMIT in the environment say otherwise.

Exit codes: 0 told to stop, 1 it could not start, 2 a setting is wrong, 4 the
node was removed from its cluster (starting it again is useless), 5 it stopped
to protect its data (look at it before you start it again).`

const serveExample = `  quorlease serve --id n1 --data ./n1 --bootstrap-expect 1
  quorlease serve --id n1 --data /var/lib/quorlease --bootstrap-expect 3 --insecure \
    --grpc 10.0.0.1:7101 --peer 10.0.0.1:7201 --http 10.0.0.1:7301 \
    --join 10.0.0.1:7201,10.0.0.2:7201,10.0.0.3:7201
  quorlease serve --config /etc/quorlease.yaml`

func newServe(a *app) *cobra.Command {
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use:     "serve --id NAME --data DIR",
		Short:   "Run one node",
		Long:    serveLong,
		Example: serveExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := refuseClientFlags(c); err != nil {
				return err
			}
			if err := o.complete(c.Context(), c); err != nil {
				return err
			}
			logger, err := o.log.logger(a)
			if err != nil {
				return err
			}
			tuneCollector(os.LookupEnv)
			return exitCodeOf(serve(c.Context(), o, logger))
		},
	}
	o.define(cmd.Flags())
	return cmd
}

const (
	// gcPercent is how much garbage a node lets lie, in percent of its live heap.
	// Under load nearly all of it is a few milliseconds old and the live heap
	// small, so that Go's own 100 collects twenty times a second; 400 was measured
	// to decide a half more a second.
	gcPercent = 400
	// memoryLimit makes the collector work harder before garbage beside a large
	// state takes this much.
	memoryLimit = 2 << 30
)

// tuneCollector sets the garbage collector for a node or a gateway, where the environment
// does not.
func tuneCollector(lookup func(string) (string, bool)) {
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := lookup("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// serve runs a node until the context ends, which is no error, or it stops
// itself.
func serve(ctx context.Context, o *serveOptions, logger hclog.Logger) error {
	s, err := startServing(ctx, o, logger)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		logger.Info("told to stop")
	case <-s.node.Done():
	case err = <-s.failed:
	}
	return errors.Join(err, s.stop()) //nolint:contextcheck // ctx has ended: stopping has its own time
}

// serving is a node with everything that listens for it.
type serving struct {
	node *cluster.Node
	api  *server.Server
	http *http.Server
	// alarm is nil where alerts go nowhere.
	alarm  *alarm.Alarm
	logger hclog.Logger

	// failed gets why a listener stopped by itself.
	failed chan error
	// listening waits for both.
	listening sync.WaitGroup
}

// httpDrain is how long requests over HTTP may take to end when the node stops.
const httpDrain = 2 * time.Second

// startServing starts, in this order: the listeners for clients, so that a port
// that is taken is found before the data directory is touched; the node; what
// answers.
func startServing(ctx context.Context, o *serveOptions, logger hclog.Logger) (*serving, error) {
	grpcListener, err := netaddr.Listen(ctx, "--grpc", o.grpc)
	if err != nil {
		return nil, err
	}
	httpListener, err := netaddr.Listen(ctx, "--http", o.http)
	if err != nil {
		return nil, errors.Join(err, grpcListener.Close())
	}
	closeListeners := func() error { return errors.Join(grpcListener.Close(), httpListener.Close()) }
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o.node.Version = thisBuild().Version
	o.node.AdvertiseGRPC = advertised(o.node.AdvertiseGRPC, o.grpc, grpcListener)
	o.node.AdvertiseHTTP = advertised(o.node.AdvertiseHTTP, o.http, httpListener)
	o.node.Logger, o.node.Registerer = logger, registry
	node, err := cluster.Open(ctx, o.node)
	if err != nil {
		return nil, errors.Join(err, closeListeners())
	}
	s := &serving{node: node, failed: make(chan error, 2), logger: logger}
	if err = s.build(o, registry); err == nil {
		err = s.watch(o, registry) //nolint:contextcheck // it goes on until the node has stopped, later than ctx ends
	}
	if err != nil {
		return nil, errors.Join(err, closeListeners(), node.Close()) //nolint:contextcheck // as in serve
	}
	s.listen("--grpc", func() error { return s.api.Serve(grpcListener) })
	s.listen("--http", func() error { return s.http.Serve(httpListener) })
	logger.Info("serving", "node", o.node.ID, "grpc", o.node.AdvertiseGRPC, "http", o.node.AdvertiseHTTP)
	return s, nil
}

// build makes what answers clients. It opens nothing.
func (s *serving) build(o *serveOptions, registry *prometheus.Registry) error {
	config := server.DefaultConfig()
	config.Node, config.Events, config.Logger = s.node, s.node.Events(), s.logger
	config.SessionGrace = o.grace
	if o.node.Insecure {
		config.Identify = server.Anyone
	}
	api, err := server.New(config)
	if err != nil {
		return fmt.Errorf("serve clients: %w", err)
	}
	over := httpapi.DefaultConfig()
	over.API, over.Gatherer, over.Logger = api, registry, s.logger
	over.Hosts = hostsOf(o.http, o.node.AdvertiseHTTP)
	s.api = api
	s.http, err = httpapi.New(over)
	return err
}

// watch sends the node's incidents where the settings say.
func (s *serving) watch(o *serveOptions, registry *prometheus.Registry) (err error) {
	if len(o.alerts.Webhooks)+len(o.alerts.Alertmanagers) == 0 {
		return nil
	}
	s.alarm, err = alarm.Open(alarm.Config{
		Node: o.node.ID, Link: "http://" + o.node.AdvertiseHTTP, Events: s.node.Events(), Targets: o.alerts,
		Leads: func() (here, elsewhere bool) {
			leader := s.node.Leader()
			return s.node.Leads(), leader != "" && leader != o.node.ID
		},
		HasQuorum:  func() bool { return s.node.Status().Quorum == cluster.HasLeader },
		Firing:     s.node.Firing,
		Registerer: registry, Logger: s.logger.Named("alarm"),
	})
	return err
}

// hostsOf are the names in addresses, under which a browser may ask.
func hostsOf(addrs ...string) (hosts []string) {
	for _, addr := range addrs {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// listen runs a listener until it is closed, which is no failure.
func (s *serving) listen(flag string, run func() error) {
	s.listening.Go(func() {
		if err := run(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%s: %w", flag, err)
		}
	})
}

// stop stops, in this order: readiness, so that nobody new comes; HTTP and
// gRPC, which answer what was asked; the node, which hands its leadership over
// while the others still hear it; the alarm, which has heard of everything by
// then. It returns why the node stopped itself, where it did.
func (s *serving) stop() error {
	s.api.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), httpDrain)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		// Whoever still reads a stream of events is cut off.
		_ = s.http.Close()
	}
	err := errors.Join(s.api.Close(), s.node.Close())
	s.listening.Wait()
	if s.alarm != nil {
		s.alarm.Close()
	}
	return errors.Join(s.node.Err(), err)
}

// advertised is the address that others are told: what was configured, else
// where this node listens. Port 0 becomes the one that the system gave.
func advertised(configured, listened string, l net.Listener) string {
	if configured != "" {
		return configured
	}
	host, port, err := net.SplitHostPort(listened)
	if err != nil || port != "0" {
		return listened
	}
	_, given, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return l.Addr().String()
	}
	return net.JoinHostPort(host, given)
}
