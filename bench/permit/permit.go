package permit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/clienttest"
)

const (
	// plenty is more than anybody spends.
	plenty = 1 << 36
	limit  = "permits"
	// batch is how many decisions lie between two looks at the clock.
	batch = 1024
	// noticeWait is how long a client may take to notice that nobody answers.
	noticeWait = 10 * time.Second
)

// errRefused: there was more than enough.
var errRefused = errors.New("a permit was refused")

// allow is what both sides have.
type allow interface{ Allow() bool }

// bench is a client of three nodes in memory, with one limit.
type bench struct {
	cluster *clienttest.Cluster
	client  *client.Client
}

func open() (b *bench, err error) {
	b = &bench{}
	if b.cluster, err = clienttest.New(3); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	burst := int64(plenty)
	err = b.cluster.Limits(&quorleasev1.Limit{
		Name: limit, Lease: durationpb.New(time.Hour),
		Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: &burst, MaxOpen: &burst,
			Rate: &quorleasev1.Rate{Amount: plenty, Interval: durationpb.New(time.Second)},
		}},
	})
	if err != nil {
		return b, err
	}
	b.client, err = client.New(client.Config{Endpoints: b.cluster.Endpoints(), Dial: b.cluster.Dial, Client: "bench"})
	return b, err
}

func (b *bench) close() error {
	var errs []error
	if b.client != nil {
		errs = append(errs, b.client.Close())
	}
	return errors.Join(append(errs, b.cluster.Close())...)
}

// limiter holds tokens already.
func (b *bench) limiter(warmup time.Duration) (*client.Limiter, error) {
	l, err := b.client.Limiter(client.LimiterConfig{Limit: limit})
	if err != nil {
		return nil, err
	}
	// Demand decides how large blocks are: a second of it makes them large enough.
	for began := time.Now(); time.Since(began) < warmup; {
		if !l.Allow() {
			return nil, errRefused
		}
	}
	return l, nil
}

// timed is what decisions cost.
type timed struct {
	// nanos a decision, on the clock, and allocations, rounded down as `go test` does.
	nanos  float64
	allocs int64
}

// measure decides for a while on so many goroutines, each on a processor of its own, and
// nothing else on others.
func measure(callers int, length time.Duration, decide func() error) (timed, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(callers))
	runtime.GC()
	counts, errs := make([]int64, callers), make([]error, callers)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var joined sync.WaitGroup
	for i := range callers {
		joined.Go(func() {
			var n int64
			for errs[i] == nil && time.Since(began) < length {
				for range batch {
					if errs[i] = decide(); errs[i] != nil {
						return
					}
				}
				n += batch
			}
			counts[i] = n
		})
	}
	joined.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	var all int64
	for _, n := range counts {
		all += n
	}
	if err := errors.Join(errs...); err != nil {
		return timed{}, err
	}
	return timed{
		nanos:  float64(took.Nanoseconds()) / float64(all),
		allocs: int64(after.Mallocs-before.Mallocs) / all, //nolint:gosec // it only grows, and not so far
	}, nil
}

func permits(a allow) func() error {
	return func() error {
		if !a.Allow() {
			return errRefused
		}
		return nil
	}
}

// other is the limiter that is measured beside ours, as full.
func other() allow { return rate.NewLimiter(rate.Limit(1e12), 1<<40) }

// failOpen is what a decision costs while the authority is known to be away.
func failOpen(ctx context.Context, length time.Duration) (took timed, err error) {
	b, err := open() //nolint:contextcheck // ending has its own time
	if err != nil {
		return timed{}, err
	}
	defer func() { err = errors.Join(err, b.close()) }() //nolint:contextcheck // ending has its own time
	request := client.Request{Charges: []client.Charge{{Limit: limit, Dimension: "requests", Amount: 1}}}
	if _, err := b.client.Acquire(ctx, request); err != nil {
		return timed{}, err
	}
	b.cluster.NoQuorum()
	for began := time.Now(); ; {
		decision, err := b.client.Acquire(ctx, request)
		if err != nil {
			return timed{}, err
		}
		if decision.Source == client.Local && b.client.FailOpen() {
			break
		}
		if time.Since(began) > noticeWait {
			return timed{}, fmt.Errorf("the client has not noticed in %v that nobody answers", noticeWait)
		}
	}
	// What it gave is reported when it ends, which takes somebody who answers.
	defer b.cluster.Serve()
	return measure(1, length, func() error {
		decision, err := b.client.Acquire(ctx, request)
		if err == nil && !decision.Granted {
			err = errRefused
		}
		return err
	})
}
