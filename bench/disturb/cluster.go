package disturb

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/hosts"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
)

const (
	size = 3
	// here is the host that callers are on.
	here = size
	// gateways is how many clients the callers share.
	gateways = 3
	// formWait is how long processes may take to form a cluster, and to be well again.
	formWait = 30 * time.Second
	// stopWait is how long a node may take to stop.
	stopWait = 10 * time.Second
)

// cluster is the nodes and the clients that ask them.
type cluster struct {
	nodes *bench.Nodes
	// network is nil where hosts can't be had; apart says why.
	network *hosts.Network
	apart   error
	clients []*client.Client
	// alerts counts those that clients raised, not those that they took back.
	alerts atomic.Int64
}

func start(ctx context.Context, c *Config) (_ *cluster, err error) {
	k := &cluster{}
	defer func() { //nolint:contextcheck // ending has its own time
		if err != nil {
			err = errors.Join(err, k.close())
		}
	}()
	config := bench.NodesConfig{
		Binary: c.Binary, Dir: c.Dir, Count: size, Log: c.Log,
		// The whole log is read in the end; snapshots are taken all the same.
		Args: []string{"--trailing-logs", "10000000"},
	}
	var dial func(context.Context, string) (net.Conn, error)
	k.network, err = hosts.Open(size + 1)
	switch {
	case errors.Is(err, hosts.ErrUnavailable):
		k.network, k.apart = nil, err
	case err != nil:
		return nil, err
	default:
		dial = k.network.Dial(here)
		config.Host, config.Wrap, config.Dial = k.network.Address, k.network.Wrap, dial
		config.Args = append(config.Args, "--insecure")
	}
	if k.nodes, err = bench.StartNodes(config); err != nil {
		return nil, err
	}
	if err := k.healthy(ctx); err != nil {
		return nil, err
	}
	heard := alert.Func(func(a alert.Alert) {
		if !a.Resolved {
			k.alerts.Add(1)
		}
	})
	for range gateways {
		one, err := client.New(client.Config{ //nolint:contextcheck // it lives until Close
			Endpoints: k.endpoints(), Client: "bench", Dial: dial, Alerts: []alert.Sink{heard}, CloseWithin: time.Second,
		})
		if err != nil {
			return nil, err
		}
		k.clients = append(k.clients, one)
	}
	return k, nil
}

func (k *cluster) endpoints() (list []string) {
	for i := range k.nodes.Len() {
		list = append(list, k.nodes.GRPC(i))
	}
	return list
}

func (k *cluster) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	return k.nodes.Healthy(ctx)
}

// leader is who leads now, and others are all who do not.
func (k *cluster) leader(ctx context.Context) (leader int, others []int, err error) {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	if leader, err = k.nodes.Leader(ctx); err != nil {
		return 0, nil, err
	}
	for i := range k.nodes.Len() {
		if i != leader {
			others = append(others, i)
		}
	}
	return leader, others, nil
}

// leave takes the clients away.
func (k *cluster) leave() error {
	var errs []error
	for _, one := range k.clients {
		errs = append(errs, one.Close())
	}
	k.clients = nil
	return errors.Join(errs...)
}

// close ends everything that was started.
func (k *cluster) close() error {
	errs := []error{k.leave()}
	if k.nodes != nil {
		errs = append(errs, k.nodes.Close())
	}
	if k.network != nil {
		errs = append(errs, k.network.Close())
	}
	return errors.Join(errs...)
}
