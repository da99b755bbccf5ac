package clustertest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
)

// Rate is a limit without keys and classes on the dimension requests, amount an
// interval, complete as the log wants it.
func Rate(name string, amount int64, interval time.Duration, burst int64) *logv1.Limit {
	return &logv1.Limit{
		Name: name, Target: 10_000, Lease: int64(time.Minute), MaxKeys: 1000,
		Dimensions: []*logv1.Dimension{{
			Name: "requests", Amount: amount, Interval: int64(interval), Burst: burst, MaxDebt: burst, MaxOpen: burst,
		}},
	}
}

// LeaseID draws a lease id.
func LeaseID() []byte {
	id := make([]byte, 16)
	// crypto/rand.Read never fails: it ends the program instead.
	_, _ = rand.Read(id)
	return id
}

// Acquire asks for amount requests of a limit, untracked.
func Acquire(limit string, amount int64) *logv1.Acquire {
	return &logv1.Acquire{
		LeaseId: LeaseID(), Charges: []*logv1.Charge{{Limit: limit, Dimension: "requests", Amount: amount}},
	}
}

// Track asks for a tracked lease.
func Track(limit string, amount int64) *logv1.Acquire {
	a := Acquire(limit, amount)
	a.Track = true
	return a
}

// ApplyLimits changes limits through a node, again while there is no leader.
func (c *Cluster) ApplyLimits(name string, limits ...*logv1.Limit) {
	c.tb.Helper()
	c.Eventually("limits applied", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := c.Node(name).ApplyLimits(ctx, &logv1.ApplyLimits{Limits: limits})
		return err
	})
}

// Decide acquires through a node, again with the same lease id while there is no
// answer, and returns the answer. An untracked acquire may so be charged twice.
func (c *Cluster) Decide(name string, op *logv1.Acquire) *logv1.AcquireResult {
	c.tb.Helper()
	var result *logv1.AcquireResult
	c.Eventually("a decision", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r, err := c.Node(name).Acquire(ctx, op, 0)
		result = r
		return err
	})
	return result
}

// Granted counts how often an acquire is granted through a node, one after the
// other, until it is denied.
func Granted(tb testing.TB, n *cluster.Node, limit string) int {
	tb.Helper()
	for granted := 0; ; granted++ {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		r, err := n.Acquire(ctx, Acquire(limit, 1), 0)
		cancel()
		switch {
		case errors.Is(err, cluster.ErrNoLeader):
			granted--
			continue
		case err != nil:
			tb.Fatalf("acquire: %v", err)
		case !r.GetGranted():
			return granted
		}
	}
}
