package client_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// BenchmarkAcquire is what a decision costs the client and the node together,
// without a network or a disk.
func BenchmarkAcquire(b *testing.B) {
	c, stop, err := alone("limits: [{name: a, unlimited: true}]\n")
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	r := client.Request{Charges: []client.Charge{{Limit: "a", Dimension: "requests", Amount: 1}}}
	var local atomic.Int64
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if d, err := c.Acquire(ctx, r); err != nil || d.Source == client.Local {
				local.Add(1)
			}
		}
	})
	if n := local.Load(); n > 0 {
		b.Errorf("%d answers were not the authority's", n)
	}
}
