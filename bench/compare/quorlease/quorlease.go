// Package quorlease runs three nodes of this program: by consensus, with a limit
// that is exact, and from escrow, with one that is not.
package quorlease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/tally"
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

// stopWait is how long a node may take to stop.
const stopWait = 10 * time.Second

// Cluster is the nodes. It is for one goroutine; its doors are not.
type Cluster struct {
	config peer.Config
	nodes  *bench.Nodes
	// tallies are what callers were granted, by the limit.
	tallies map[string]*tally.Tally
}

var _ peer.Keeper = (*Cluster)(nil)

// Start starts them and applies the limits.
func Start(ctx context.Context, c peer.Config) (*Cluster, error) {
	processes, err := bench.StartNodes(bench.NodesConfig{
		Binary: c.Programs[Program], Dir: c.Dir, Count: nodes, Log: c.Log,
		// The whole log is read in the end; snapshots are taken all the same.
		Args: []string{"--trailing-logs", "10000000"},
	})
	if err != nil {
		return nil, err
	}
	q := &Cluster{config: c, nodes: processes, tallies: map[string]*tally.Tally{}}
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
			name := limitName(&b, exact)
			q.tallies[name] = tally.New(tally.Bucket{
				Limit: name, Dimension: dimension, Rate: b.PerSecond, Interval: time.Second, Burst: b.Burst,
				Escrow: !exact,
			}, b.AllKeys(), q.config.Lasting)
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

// ways are what is asked of the limits, and how.
var ways = map[peer.Way]struct{ exact, session bool }{
	ConsensusUnary: {true, false}, ConsensusSession: {true, true}, EscrowUnary: {}, EscrowSession: {false, true},
}

// Note is told what callers are granted.
func (q *Cluster) Note(way peer.Way, bucket peer.Bucket) func(key int, sent, ended time.Time) {
	return q.tallies[limitName(&bucket, ways[way].exact)].Grant
}

// Check holds everything that was granted of every limit to G1 and G2 by the callers'
// clock, and ends the leader to hold its whole log to G1: what lies before a crash, too.
func (q *Cluster) Check(ctx context.Context) (checks []report.Check, err error) {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	var addresses []string
	for i := range q.nodes.Len() {
		addresses = append(addresses, q.nodes.GRPC(i))
	}
	var all []*tally.Tally
	for _, name := range slices.Sorted(maps.Keys(q.tallies)) {
		t := q.tallies[name]
		slack, err := t.Slack(ctx, addresses)
		if err != nil {
			return nil, err
		}
		some, err := t.Outside(slack, false)
		if err != nil {
			return nil, err
		}
		for i := range some {
			some[i].By += " (" + name + ")"
		}
		checks, all = append(checks, some...), append(all, t)
	}
	// Whoever leads has every entry that was acknowledged.
	leader, err := q.nodes.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.nodes.Stop(leader, stopWait); err != nil {
		return nil, err
	}
	inside, err := tally.Log(q.nodes, leader, true, all...)
	return append(checks, inside...), err
}

// Open connects to the leader, once anybody asks.
func (q *Cluster) Open(_ context.Context, way peer.Way, bucket peer.Bucket) (peer.Door, error) {
	how, ok := ways[way]
	if !ok {
		return nil, fmt.Errorf("way %q is none of this program's", way)
	}
	c := link.Config{
		Session: how.session, Timeout: q.config.Timeout, Client: client,
		Limit: limitName(&bucket, how.exact), Dimension: dimension, Keys: bucket.AllKeys(),
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
