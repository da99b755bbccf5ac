// Package quorlease runs three nodes of this program: by consensus, with a limit
// that is exact, and from escrow, with one that is not.
package quorlease

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
)

// The ways to ask it.
const (
	// ConsensusUnary and ConsensusSession: every grant is a log entry's own.
	ConsensusUnary   peer.Way = "consensus-unary"
	ConsensusSession peer.Way = "consensus-session"
	// EscrowUnary and EscrowSession: nodes grant what the log gave them before.
	EscrowUnary   peer.Way = "escrow-unary"
	EscrowSession peer.Way = "escrow-session"
)

// Program is this one. It is not looked for.
const Program = "quorlease"

const (
	nodes = 3
	// dimension is what every limit counts.
	dimension = "requests"
	// client is the callers' name.
	client = "bench"
	// lease is the life of a lease of the limits.
	lease = 5 * time.Second
	// formWait is how long three processes may take to form a cluster.
	formWait = 30 * time.Second
)

// Cluster is the nodes. It is for one goroutine; its doors are not.
type Cluster struct {
	config peer.Config
	nodes  *bench.Nodes
}

var _ peer.Keeper = (*Cluster)(nil)

// Start starts them and applies the limits.
func Start(ctx context.Context, c peer.Config) (*Cluster, error) {
	processes, err := bench.StartNodes(bench.NodesConfig{
		Binary: c.Programs[Program], Dir: c.Dir, Count: nodes, Log: c.Log,
	})
	if err != nil {
		return nil, err
	}
	q := &Cluster{config: c, nodes: processes}
	if err := q.configure(ctx); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *Cluster) configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	if err := q.nodes.Healthy(ctx); err != nil {
		return err
	}
	leader, err := q.nodes.Leader(ctx)
	if err != nil {
		return err
	}
	for _, b := range q.config.Buckets {
		for _, exact := range []bool{true, false} {
			if err := bench.ApplyLimit(ctx, q.nodes.GRPC(leader), limit(&b, exact)); err != nil {
				return err
			}
		}
	}
	return nil
}

// limitName tells the limits of a bucket apart.
func limitName(b *peer.Bucket, exact bool) string {
	if exact {
		return b.Name + "-exact"
	}
	return b.Name
}

func limit(b *peer.Bucket, exact bool) *quorleasev1.Limit {
	keys, open := int64(b.Keys), b.PerSecond
	return &quorleasev1.Limit{
		Name: limitName(b, exact), Per: []string{"key"}, MaxKeys: &keys, Exact: exact,
		Lease: durationpb.New(lease), OnQuorumLoss: quorleasev1.FallbackMode_OPEN_ON_LOSS,
		Dimensions: []*quorleasev1.Dimension{{
			Name: dimension, Burst: &b.Burst, MaxOpen: &open,
			Rate: &quorleasev1.Rate{Amount: b.PerSecond, Interval: durationpb.New(time.Second)},
		}},
	}
}

// CPU is the nodes' processor time.
func (q *Cluster) CPU() (time.Duration, error) {
	var sum time.Duration
	for i := range q.nodes.Len() {
		used, err := q.nodes.CPU(i)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// Open connects to the leader, once anybody asks.
func (q *Cluster) Open(_ context.Context, way peer.Way, bucket peer.Bucket) (peer.Door, error) {
	var exact, session bool
	switch way {
	case ConsensusUnary:
		exact = true
	case ConsensusSession:
		exact, session = true, true
	case EscrowUnary:
	case EscrowSession:
		session = true
	default:
		return nil, fmt.Errorf("way %q is none of this program's", way)
	}
	c := link.Config{
		Session: session, Timeout: q.config.Timeout, Client: client,
		Limit: limitName(&bucket, exact), Dimension: dimension, Keys: bucket.AllKeys(),
	}
	for i := range q.nodes.Len() {
		c.Endpoints = append(c.Endpoints, q.nodes.GRPC(i))
	}
	return door{link.New(c)}, nil
}

// Crash kills all nodes and starts them again.
func (q *Cluster) Crash(ctx context.Context) error {
	for i := range q.nodes.Len() {
		if err := q.nodes.Signal(i, syscall.SIGKILL); err != nil {
			return err
		}
	}
	for i := range q.nodes.Len() {
		if err := q.nodes.Start(i); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	return q.nodes.Healthy(ctx)
}

// Close ends them.
func (q *Cluster) Close() error { return q.nodes.Close() }

// door is the one connection.
type door struct{ *link.Link }

// Asker is that of one more caller.
func (d door) Asker(int) (load.Asker, error) { return d.Link.Asker(), nil }
