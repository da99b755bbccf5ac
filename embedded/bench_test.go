package embedded_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/embedded"
)

// BenchmarkAcquire is one acquire from a node's memory, as a program sees it.
func BenchmarkAcquire(b *testing.B) {
	a := open(b, embedded.Config{Dir: b.TempDir(), Limits: limitsOf(b,
		"limits: [{name: api, rate: {requests: 100000000/s}, burst: {requests: 100000000}}]\n")})
	c := ask(b, a)
	request := of("api", 1)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for range 1000 {
		if d, err := c.Acquire(ctx, request); err != nil || !d.Granted {
			b.Fatal(d, err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	took := make([]time.Duration, b.N)
	for i := range took {
		began := time.Now()
		d, err := c.Acquire(ctx, request)
		took[i] = time.Since(began)
		if err != nil || !d.Granted || d.Source != client.Escrow {
			b.Fatalf("%+v, %v: want a grant from memory", d, err)
		}
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}
