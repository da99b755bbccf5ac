// Package etcd keeps token buckets in three etcd servers of its own: a read and a
// conditional write a decision, as a program without an authority would, beside the
// bare write that any decision costs there at least.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/compare/wire"
)

// The ways to ask it.
const (
	// Put: one write, which decides nothing.
	Put peer.Way = "put"
	// Take: read the bucket, take a token where there is one, and write it where
	// nobody else did in between; otherwise again.
	Take peer.Way = "take"
)

// Program is the server.
var Program = peer.Program{Name: "etcd", Files: []string{"etcd"}, How: "apt-get install etcd-server"}

// Cluster is some servers. It is for one goroutine; its doors are not.
type Cluster struct {
	config         peer.Config
	clients, peers []string
	processes      []*bench.Process
}

var _ peer.Keeper = (*Cluster)(nil)

// nodes is how many Start starts.
const nodes = 3

// Start starts three servers that replicate to one another.
func Start(ctx context.Context, c peer.Config) (*Cluster, error) { return start(ctx, c, nodes) }

// StartOne starts a server that is alone, for others who need one.
func StartOne(ctx context.Context, c peer.Config) (*Cluster, error) { return start(ctx, c, 1) }

func start(ctx context.Context, c peer.Config, count int) (*Cluster, error) {
	addresses, err := bench.FreePorts(2 * count)
	if err != nil {
		return nil, err
	}
	e := &Cluster{
		config: c, clients: addresses[:count], peers: addresses[count:], processes: make([]*bench.Process, count),
	}
	if err := e.run(ctx); err != nil {
		peer.Kill(e.processes...)
		return nil, err
	}
	return e, nil
}

// Addresses are where clients connect.
func (e *Cluster) Addresses() []string { return e.clients }

// run starts every server and waits until they have a leader.
func (e *Cluster) run(ctx context.Context) error {
	all := make([]string, len(e.peers))
	for i, address := range e.peers {
		all[i] = name(i) + "=http://" + address
	}
	for i := range e.processes {
		process, err := bench.StartProcess(bench.Program{
			Path: e.config.Programs[Program.Name], Dir: e.config.Dir, Log: e.config.Log,
			Args: []string{
				"--name", name(i), "--data-dir", filepath.Join(e.config.Dir, name(i)),
				"--listen-client-urls", "http://" + e.clients[i], "--advertise-client-urls", "http://" + e.clients[i],
				"--listen-peer-urls", "http://" + e.peers[i], "--initial-advertise-peer-urls", "http://" + e.peers[i],
				"--initial-cluster", strings.Join(all, ","), "--initial-cluster-state", "new",
				"--initial-cluster-token", "quorlease-bench", "--logger", "zap", "--log-level", "error",
			},
		})
		if err != nil {
			return err
		}
		e.processes[i] = process
	}
	return peer.Ready(ctx, "etcd", func(ctx context.Context) error {
		_, err := e.leader(ctx)
		return err
	}, e.processes...)
}

func name(i int) string { return "e" + strconv.Itoa(i+1) }

// errNoLeader: nobody says that he leads.
var errNoLeader = errors.New("no leader")

// leader is the address of the server that leads.
func (e *Cluster) leader(ctx context.Context) (string, error) {
	found := ""
	for _, address := range e.clients {
		leads, err := leads(ctx, address)
		if err != nil {
			return "", err
		}
		if leads {
			found = address
		}
	}
	if found == "" {
		return "", errNoLeader
	}
	return found, nil
}

// leads asks a server whether it leads.
func leads(ctx context.Context, address string) (bool, error) {
	conn, err := bench.Dial(address)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	status, err := wire.Call(ctx, conn, "/etcdserverpb.Maintenance/Status", nil)
	if err != nil {
		return false, fmt.Errorf("ask %s for its status: %w", address, err)
	}
	const headerField, memberField, leaderField = 1, 2, 4
	header, err := status.First(headerField)
	if err != nil {
		return false, err
	}
	member, err := wire.Message(header.Bytes).First(memberField)
	if err != nil {
		return false, err
	}
	leader, err := status.First(leaderField)
	return err == nil && leader.Value != 0 && leader.Value == member.Value, err
}

// CPU is the servers' processor time.
func (e *Cluster) CPU() (time.Duration, error) { return peer.CPU(e.processes...) }

// Open connects to the leader.
func (e *Cluster) Open(ctx context.Context, way peer.Way, bucket peer.Bucket) (peer.Door, error) {
	if way != Put && way != Take {
		return nil, fmt.Errorf("way %q is none of %s, %s", way, Put, Take)
	}
	// One that hangs accepts connections, and says nothing.
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	address, err := e.leader(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	conn, err := bench.Dial(address)
	if err != nil {
		return nil, err
	}
	return newDoor(conn, way, bucket, e.config.Timeout), nil
}

// Crash kills all and starts them again on what they had written.
func (e *Cluster) Crash(ctx context.Context) error {
	peer.Kill(e.processes...)
	return e.run(ctx)
}

// Close ends them.
func (e *Cluster) Close() error {
	peer.Kill(e.processes...)
	return nil
}

func newDoor(conn *grpc.ClientConn, way peer.Way, bucket peer.Bucket, timeout time.Duration) *door {
	return &door{conn: conn, way: way, bucket: bucket, keys: bucket.AllKeys(), timeout: timeout}
}
