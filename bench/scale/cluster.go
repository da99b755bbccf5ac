package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/share"
	"github.com/quorlease/quorlease/bench/tally"
)

const (
	// formWait is how long nodes may take to form a cluster, and to add who joins.
	formWait = time.Minute
	// stopWait is how long a node may take to stop.
	stopWait = 10 * time.Second

	dimension  = "requests"
	clientName = "bench"
	// limitLease is the life of a lease of the limits.
	limitLease = 5 * time.Second
)

// What the keys of a limit have: more than anybody spends, and where they are asked for
// again and again as much of it as all nodes hold ahead of time (escrow is bounded by
// what the rate hands out in its life). Where they are so many that each is touched now
// and then, hardly anything comes back, so that one that was touched stays in the state.
const (
	enough = 5_000_000
	// burstSeconds of the rate is the burst, and burstLeast is enough for escrow.
	burstSeconds, burstLeast = 10, 1000
	// hotMost is the most keys that are asked for again and again.
	hotMost = 100_000
)

// shape is what each of so many keys has.
func shape(keys int) tally.Bucket {
	if keys > hotMost {
		return tally.Bucket{Dimension: dimension, Rate: 1, Interval: time.Hour, Burst: burstLeast}
	}
	rate := int64(enough / keys)
	return tally.Bucket{
		Dimension: dimension, Rate: rate, Interval: time.Second, Burst: max(burstSeconds*rate, burstLeast),
	}
}

// cluster is nodes of this run's own.
type cluster struct {
	dir       string
	nodes     *bench.Nodes
	endpoints []string
	// shares are nil where the nodes have the whole machine.
	shares *share.Groups
	groups []*share.Group
}

// start starts so many nodes, those beyond three as learners, and waits until all of
// them are well. With shares they are in groups that do not bound them yet.
func (r *run) start(ctx context.Context, size int, shares *share.Groups, args ...string) (c *cluster, err error) {
	r.clusters++
	c = &cluster{dir: filepath.Join(r.config.Dir, "cluster-"+strconv.Itoa(r.clusters)), shares: shares}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
			c = nil
		}
	}()
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return c, fmt.Errorf("start nodes: %w", err)
	}
	voters := min(size, votersMost)
	config := bench.NodesConfig{
		Binary: r.config.Binary, Dir: c.dir, Count: voters, Spare: size - voters, Log: r.config.Log,
		// The whole log is read in the end; snapshots are taken all the same.
		Args: append([]string{"--trailing-logs", "10000000"}, args...),
	}
	if shares != nil {
		for range size {
			group, err := shares.Add()
			if err != nil {
				return c, err
			}
			c.groups = append(c.groups, group)
		}
		config.Wrap = func(i int) []string { return c.groups[i].Wrap() }
	}
	if c.nodes, err = bench.StartNodes(config); err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	if err := c.nodes.Healthy(ctx); err != nil {
		return c, err
	}
	for _, i := range c.nodes.Outside() {
		if err := c.nodes.Join(ctx, i); err != nil {
			return c, err
		}
	}
	for i := range size {
		c.endpoints = append(c.endpoints, c.nodes.GRPC(i))
	}
	return c, c.nodes.Healthy(ctx)
}

// apply applies a limit of so many keys.
func (c *cluster) apply(ctx context.Context, keys int, b tally.Bucket, exact bool) error {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	leader, err := c.nodes.Leader(ctx)
	if err != nil {
		return err
	}
	most := int64(keys)
	return bench.ApplyLimit(ctx, c.nodes.GRPC(leader), &quorleasev1.Limit{
		Name: b.Limit, Per: []string{"key"}, MaxKeys: &most, Exact: exact, Lease: durationpb.New(limitLease),
		OnQuorumLoss: quorleasev1.FallbackMode_CLOSED_ON_LOSS,
		Dimensions: []*quorleasev1.Dimension{{
			Name: b.Dimension, Burst: &b.Burst,
			Rate: &quorleasev1.Rate{Amount: b.Rate, Interval: durationpb.New(b.Interval)},
		}},
	})
}

// bound gives every node its share; 0 takes the bound away.
func (c *cluster) bound(part int64) error {
	for _, group := range c.groups {
		if err := group.Bound(part); err != nil {
			return err
		}
	}
	return nil
}

// cpu is the processor time of each node.
func (c *cluster) cpu() ([]time.Duration, error) {
	each := make([]time.Duration, c.nodes.Len())
	for i := range each {
		var err error
		if each[i], err = c.nodes.CPU(i); err != nil {
			return nil, err
		}
	}
	return each, nil
}

// close ends the nodes and removes what they had.
func (c *cluster) close() error {
	var errs []error
	if c.nodes != nil {
		errs = append(errs, c.nodes.Close())
	}
	if c.shares != nil {
		errs = append(errs, c.shares.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
