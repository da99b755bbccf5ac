package clustertest_test

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

func BenchmarkSubmit(b *testing.B) {
	c := clustertest.New(b, 3, clustertest.Options{})
	for _, where := range []string{"leader", "follower"} {
		b.Run(where, func(b *testing.B) {
			name := c.Leader()
			if where == "follower" {
				name = c.Followers()[0]
			}
			n := c.Node(name)
			const flight = 128
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan struct{}, flight)
			var failed atomic.Int64
			var issue func()
			var id atomic.Uint64
			issue = func() {
				if left.Add(-1) < 0 {
					done <- struct{}{}
					return
				}
				lease := make([]byte, 16)
				k := id.Add(1)
				binary.BigEndian.PutUint64(lease, k)
				n.Submit(&cluster.Pending{
					Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
						LeaseId: lease, Client: "bench",
						Charges: []*logv1.Charge{{Limit: "bench", Key: "k" + string(rune('0'+k%10)), Dimension: "requests", Amount: 1}},
					}}},
					Deadline: time.Now().Add(5 * time.Second),
					Done: func(_ *logv1.Result, err error) {
						if err != nil {
							failed.Add(1)
						}
						go issue()
					},
				})
			}
			b.ResetTimer()
			start := time.Now()
			for range flight {
				go issue()
			}
			for range flight {
				<-done
			}
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "ops/s")
			b.ReportMetric(float64(failed.Load()), "failed")
		})
	}
}
