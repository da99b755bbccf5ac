package clustertest_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// inFlight is how many callers wait at a time.
const inFlight = 128

// load keeps inFlight acquires at a node until count were answered, and returns
// how many failed and one of the errors.
func load(n *cluster.Node, count int) (int64, error) {
	var issued, failed atomic.Int64
	var sample atomic.Pointer[error]
	var waiting sync.WaitGroup
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%02d", i)
	}
	caller := func() {
		answer := make(chan error, 1)
		for {
			i := issued.Add(1)
			if i > int64(count) {
				return
			}
			lease := make([]byte, 16)
			binary.BigEndian.PutUint64(lease, uint64(i))
			n.Submit(&cluster.Pending{
				Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
					LeaseId: lease, Client: "bench",
					Charges: []*logv1.Charge{{
						Limit: "bench", Key: keys[i%int64(len(keys))], Dimension: "requests", Amount: 1,
					}},
				}}},
				Deadline: time.Now().Add(5 * time.Second),
				Done: func(r *logv1.Result, err error) {
					if err == nil && !r.GetAcquire().GetGranted() {
						err = fmt.Errorf("not granted: %v", r)
					}
					answer <- err
				},
			})
			if err := <-answer; err != nil {
				failed.Add(1)
				sample.Store(&err)
			}
		}
	}
	for range inFlight {
		waiting.Go(caller)
	}
	waiting.Wait()
	if err := sample.Load(); err != nil {
		return failed.Load(), *err
	}
	return 0, nil
}

// BenchmarkAcquire measures untracked acquires on 100 keys with 128 callers, on
// three nodes in one process that sync every entry to disk.
func BenchmarkAcquire(b *testing.B) {
	c := clustertest.New(b, 3, clustertest.Options{})
	limit := clustertest.Rate("bench", 1_000_000, time.Second, 1_000_000_000)
	limit.Keyed = true
	c.ApplyLimits("a", limit)
	for _, where := range []string{"leader", "follower"} {
		b.Run(where, func(b *testing.B) {
			name := c.Leader()
			if where == "follower" {
				name = c.Followers()[0]
			}
			b.ResetTimer()
			start, first := time.Now(), c.State(name).Index
			failed, err := load(c.Node(name), b.N)
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "op/s")
			b.ReportMetric(float64(b.N)/float64(c.State(name).Index-first), "op/entry")
			if err != nil {
				b.Errorf("%d of %d failed: %v", failed, b.N, err)
			}
		})
	}
}

// BenchmarkEscrow is BenchmarkAcquire where nodes may hold escrow: entries carry what they
// ask for.
func BenchmarkEscrow(b *testing.B) {
	c := clustertest.New(b, 3, clustertest.Options{})
	limit := clustertest.Rate("bench", 1_000_000, time.Second, 10_000_000)
	limit.Keyed, limit.Escrow = true, int64(3*time.Second)
	c.ApplyLimits("a", limit)
	name := c.Followers()[0]
	if failed, err := load(c.Node(name), 5000); err != nil {
		b.Fatalf("%d failed: %v", failed, err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	start, first := time.Now(), c.State(name).Index
	failed, err := load(c.Node(name), b.N)
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "op/s")
	b.ReportMetric(float64(c.State(name).Index-first)/time.Since(start).Seconds(), "entry/s")
	if err != nil {
		b.Errorf("%d of %d failed: %v", failed, b.N, err)
	}
}

// BenchmarkAudit measures what an audit file costs: two clusters answer the same, one after
// the other, with and without it, and the median of the quotients of their times is
// reported, in percent above 1.
func BenchmarkAudit(b *testing.B) {
	const each = 5000
	limit := clustertest.Rate("bench", 1_000_000, time.Second, 1_000_000_000)
	limit.Keyed = true
	var nodes []*cluster.Node
	for _, path := range []string{"", b.TempDir()} {
		c := clustertest.New(b, 3, clustertest.Options{Configure: func(_ string, config *cluster.Config) {
			if path != "" {
				config.Audit = filepath.Join(path, config.ID)
			}
		}})
		c.ApplyLimits("a", limit)
		nodes = append(nodes, c.Node(c.Leader()))
	}
	var more []float64
	for round := 0; b.Loop(); round++ {
		var took [2]time.Duration
		for i := range nodes {
			at := (i + round) % 2
			start := time.Now()
			if failed, err := load(nodes[at], each); err != nil {
				b.Fatalf("%d of %d failed: %v", failed, each, err)
			}
			took[at] = time.Since(start)
		}
		more = append(more, 100*(took[1].Seconds()/took[0].Seconds()-1))
	}
	slices.Sort(more)
	b.ReportMetric(more[len(more)/2], "%more")
}
