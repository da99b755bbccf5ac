package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// LoadConfig is a closed loop: every caller has one acquire under way.
type LoadConfig struct {
	// Address of the node that the one stream goes to.
	Address string
	// Limit has keys; caller c of round r charges key (c + r) mod Keys.
	Limit   string
	Callers int
	Keys    int
	Warmup  time.Duration
	Length  time.Duration
}

// LoadResult counts what happened after the warm-up.
type LoadResult struct {
	Granted, Denied, Failed int64
	Length                  time.Duration
	// Latency in nanoseconds of granted and denied acquires.
	Latency *hdrhistogram.Histogram
}

// GrantsPerSecond is the throughput.
func (r *LoadResult) GrantsPerSecond() float64 { return float64(r.Granted) / r.Length.Seconds() }

// String is one line for people.
func (r *LoadResult) String() string {
	ms := func(quantile float64) float64 { return float64(r.Latency.ValueAtQuantile(quantile)) / 1e6 }
	return fmt.Sprintf("%.0f grants/s, %d denied, %d failed, p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms",
		r.GrantsPerSecond(), r.Denied, r.Failed, ms(50), ms(99), ms(99.9))
}

// RunLoad drives one session with many callers and measures it.
func RunLoad(ctx context.Context, config LoadConfig) (*LoadResult, error) {
	conn, err := Dial(config.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	session, err := OpenSession(ctx, conn, "bench")
	if err != nil {
		return nil, err
	}
	defer session.Close()
	run := &loadRun{config: config, session: session}
	return run.measure(ctx)
}

type loadRun struct {
	config  LoadConfig
	session *Session

	measuring               atomic.Bool
	granted, denied, failed atomic.Int64

	mu      sync.Mutex
	latency *hdrhistogram.Histogram // guarded by mu
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1_000, 60_000_000_000, 3) }

func (r *loadRun) measure(ctx context.Context) (*LoadResult, error) {
	r.latency = newHistogram()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var callers sync.WaitGroup
	for c := range r.config.Callers {
		callers.Go(func() { r.call(ctx, c) })
	}
	err := pause(ctx, r.config.Warmup)
	r.measuring.Store(true)
	start := time.Now()
	if err == nil {
		err = pause(ctx, r.config.Length)
	}
	r.measuring.Store(false)
	length := time.Since(start)
	cancel()
	callers.Wait()
	if err != nil {
		return nil, fmt.Errorf("run load: %w", err)
	}
	return &LoadResult{
		Granted: r.granted.Load(), Denied: r.denied.Load(), Failed: r.failed.Load(),
		Length: length, Latency: r.latency,
	}, nil
}

// call is one caller's loop.
func (r *loadRun) call(ctx context.Context, caller int) {
	call := r.session.NewCall()
	own := newHistogram()
	keys := make([]string, r.config.Keys)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	for round := caller; ctx.Err() == nil; round++ {
		start := time.Now()
		response, err := call.Acquire(ctx, &quorleasev1.AcquireRequest{
			Client: "bench",
			Charges: []*quorleasev1.Charge{{
				Limit: r.config.Limit, Key: keys[round%len(keys)], Dimension: "requests", Amount: 1,
			}},
		})
		if !r.measuring.Load() {
			continue
		}
		r.count(own, response, err, time.Since(start))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency.Merge(own)
}

func (r *loadRun) count(
	own *hdrhistogram.Histogram, response *quorleasev1.AcquireResponse, err error, took time.Duration,
) {
	switch {
	case err != nil:
		r.failed.Add(1)
		return
	case response.GetDecision() == quorleasev1.Decision_GRANTED:
		r.granted.Add(1)
	default:
		r.denied.Add(1)
	}
	// Out of range only beyond a minute, where the bound of the call is less.
	_ = own.RecordValue(took.Nanoseconds())
}
