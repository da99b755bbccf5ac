package permit

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/clienttest"
)

// plenty is more than any benchmark spends.
const plenty = 1 << 36

// start is a client of three nodes in memory, with one limit.
func start(b *testing.B) (*clienttest.Cluster, *client.Client) {
	b.Helper()
	cluster, err := clienttest.New(3)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			b.Error(err)
		}
	})
	burst := int64(plenty)
	err = cluster.Limits(&quorleasev1.Limit{
		Name: "permits", Lease: durationpb.New(time.Hour),
		Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: &burst, MaxOpen: &burst,
			Rate: &quorleasev1.Rate{Amount: plenty, Interval: durationpb.New(time.Second)},
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.New(client.Config{Endpoints: cluster.Endpoints(), Dial: cluster.Dial, Client: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	return cluster, c
}

// limiter holds tokens already.
func limiter(b *testing.B) *client.Limiter {
	b.Helper()
	_, c := start(b)
	l, err := c.Limiter(client.LimiterConfig{Limit: "permits"})
	if err != nil {
		b.Fatal(err)
	}
	// Demand decides how large blocks are: a second of it makes them large enough.
	for began := time.Now(); time.Since(began) < time.Second; {
		if !l.Allow() {
			b.Fatal("a permit was refused")
		}
	}
	return l
}

// allow is what both sides have.
type allow interface{ Allow() bool }

func beside() allow { return rate.NewLimiter(rate.Limit(1e12), 1<<40) }

// BenchmarkAlone is one caller.
func BenchmarkAlone(b *testing.B) {
	b.Run("quorlease", func(b *testing.B) { alone(b, limiter(b)) })
	b.Run("rate", func(b *testing.B) { alone(b, beside()) })
}

func alone(b *testing.B, a allow) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if !a.Allow() {
			b.Fatal("refused")
		}
	}
}

// BenchmarkTogether is one caller a processor, all of one limiter.
func BenchmarkTogether(b *testing.B) {
	b.Run("quorlease", func(b *testing.B) { together(b, limiter(b)) })
	b.Run("rate", func(b *testing.B) { together(b, beside()) })
}

func together(b *testing.B, a allow) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !a.Allow() {
				b.Error("refused")
			}
		}
	})
}

// BenchmarkFailOpen is a decision while the authority is known to be away.
func BenchmarkFailOpen(b *testing.B) {
	cluster, c := start(b)
	request := client.Request{Charges: []client.Charge{{Limit: "permits", Dimension: "requests", Amount: 1}}}
	if _, err := c.Acquire(b.Context(), request); err != nil {
		b.Fatal(err)
	}
	cluster.NoQuorum()
	for began := time.Now(); ; {
		decision, err := c.Acquire(b.Context(), request)
		if err != nil {
			b.Fatal(err)
		}
		if decision.Source == client.Local && c.FailOpen() {
			break
		}
		if time.Since(began) > 10*time.Second {
			b.Fatal("the client has not noticed in 10 s that nobody answers")
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		decision, err := c.Acquire(b.Context(), request)
		if err != nil || !decision.Granted {
			b.Fatalf("%+v, %v", decision, err)
		}
	}
}
