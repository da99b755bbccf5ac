// Package gubernator runs three Gubernator nodes that share the keys among them.
// They find one another through an etcd server, which takes part in nothing else:
// by gossip, nodes on one machine would need host names of their own.
package gubernator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/compare/etcd"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/compare/wire"
	"github.com/quorlease/quorlease/bench/load"
)

// Unary is the only way that it is asked: one call a decision, of the node that the
// caller is connected to.
const Unary peer.Way = "unary"

// Program is the node. It needs etcd beside it.
var Program = peer.Program{
	Name: "gubernator", Files: []string{"gubernator"},
	How: "go install github.com/gubernator-io/gubernator/v2/cmd/gubernator@v2.13.0",
}

// nodes is how many there are.
const nodes = 3

// Cluster is the nodes and their directory. It is for one goroutine; its doors are
// not.
type Cluster struct {
	config    peer.Config
	directory *etcd.Cluster
	grpc      []string
	http      []string
	processes []*bench.Process
}

var _ peer.Keeper = (*Cluster)(nil)

// Start starts them.
func Start(ctx context.Context, c peer.Config) (*Cluster, error) {
	addresses, err := bench.FreePorts(2 * nodes)
	if err != nil {
		return nil, err
	}
	g := &Cluster{
		config: c, grpc: addresses[:nodes], http: addresses[nodes:], processes: make([]*bench.Process, nodes),
	}
	if g.directory, err = etcd.StartOne(ctx, c); err != nil {
		return nil, err
	}
	if err := g.run(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Cluster) run(ctx context.Context) error {
	for i := range g.processes {
		process, err := bench.StartProcess(bench.Program{
			Path: g.config.Programs[Program.Name], Dir: g.config.Dir, Log: g.config.Log,
			Env: []string{
				"GUBER_GRPC_ADDRESS=" + g.grpc[i], "GUBER_HTTP_ADDRESS=" + g.http[i],
				"GUBER_ADVERTISE_ADDRESS=" + g.grpc[i], "GUBER_PEER_DISCOVERY_TYPE=etcd",
				"GUBER_ETCD_ENDPOINTS=" + g.directory.Addresses()[0], "GUBER_LOG_LEVEL=error",
				"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none",
			},
		})
		if err != nil {
			return err
		}
		g.processes[i] = process
	}
	return peer.Ready(ctx, "gubernator", g.clustered, g.processes...)
}

// The fields of messages that are used.
const (
	healthPeers = 3

	requestsField, responsesField                                             = 1, 1
	limitName, limitKey, limitHits, limitLimit, limitDuration, responseStatus = 1, 2, 3, 4, 5, 1
	responseError                                                             = 5
	statusUnder                                                               = 0
)

// clustered asks every node whether it knows of all.
func (g *Cluster) clustered(ctx context.Context) error {
	for _, address := range g.grpc {
		known, err := peers(ctx, address)
		if err != nil {
			return err
		}
		if known != nodes {
			return fmt.Errorf("the node at %s knows of %d nodes, not %d", address, known, nodes)
		}
	}
	return nil
}

func peers(ctx context.Context, address string) (int64, error) {
	conn, err := bench.Dial(address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	health, err := wire.Call(ctx, conn, "/pb.gubernator.V1/HealthCheck", nil)
	if err != nil {
		return 0, fmt.Errorf("ask %s for its health: %w", address, err)
	}
	known, err := health.First(healthPeers)
	return known.Value, err
}

// CPU is the nodes' processor time. Their directory is none of the decisions'.
func (g *Cluster) CPU() (time.Duration, error) { return peer.CPU(g.processes...) }

// Open connects to every node: callers spread over them.
func (g *Cluster) Open(_ context.Context, way peer.Way, bucket peer.Bucket) (peer.Door, error) {
	if way != Unary {
		return nil, fmt.Errorf("way %q is not %s", way, Unary)
	}
	d := &door{timeout: g.config.Timeout}
	for _, address := range g.grpc {
		conn, err := bench.Dial(address)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.conns = append(d.conns, conn)
	}
	day := (24 * time.Hour).Milliseconds()
	for _, key := range bucket.AllKeys() {
		one := wire.Message(nil).Text(limitName, bucket.Name).Text(limitKey, key).
			Number(limitHits, 1).Number(limitLimit, bucket.Burst).Number(limitDuration, day)
		d.requests = append(d.requests, wire.Message(nil).Bytes(requestsField, one))
	}
	return d, nil
}

// Crash kills all nodes and starts them again.
func (g *Cluster) Crash(ctx context.Context) error {
	peer.Kill(g.processes...)
	return g.run(ctx)
}

// Close ends everything.
func (g *Cluster) Close() error {
	peer.Kill(g.processes...)
	return g.directory.Close()
}

// door is a connection to each node.
type door struct {
	conns    []*grpc.ClientConn
	requests []wire.Message
	timeout  time.Duration
}

// Asker is that of the node whose turn it is.
func (d *door) Asker(index int) (load.Asker, error) {
	return &asker{door: d, conn: d.conns[index%len(d.conns)]}, nil
}

// Close ends the connections.
func (d *door) Close() error {
	var errs []error
	for _, conn := range d.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// asker is one caller.
type asker struct {
	door *door
	conn *grpc.ClientConn
}

// Ask asks for one token.
func (a *asker) Ask(ctx context.Context, key int) (load.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, a.door.timeout)
	defer cancel()
	answer, err := wire.Call(ctx, a.conn, "/pb.gubernator.V1/GetRateLimits", a.door.requests[key])
	if err != nil {
		return load.Answer{}, err
	}
	response, err := answer.First(responsesField)
	if err != nil {
		return load.Answer{}, err
	}
	var code int64
	var failure string
	err = wire.Message(response.Bytes).Fields(func(f wire.Field) {
		if f.Number == responseStatus {
			code = f.Value
		}
		if f.Number == responseError {
			failure = string(f.Bytes)
		}
	})
	if err == nil && failure != "" {
		err = errors.New(failure)
	}
	return load.Answer{Granted: err == nil && code == statusUnder}, err
}
