package disturb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
)

const (
	// keys that are not short, so many that each is asked for some hundred times a second.
	keys = 64
	// patience of callers of buckets that are not short: as long as a client's own.
	patience = client.DefaultDeadline
	// shortPatience is that of callers who come out of a change of leader with an answer.
	shortPatience = 4 * time.Second
)

// What buckets that are not short get a second, and can have, for each token that is asked
// of them in a second.
const (
	rateFor  = 2
	burstFor = 10
)

// The buckets that are short. One gets less than is asked for, and lies near nothing; the
// other has enough, and every grant is an entry's.
const (
	shortRate, shortBurst = 100, 400
	shortPerSecond        = 150
	exactRate, exactBurst = 400, 400
	exactPerSecond        = 100
)

// run is one under way.
type run struct {
	config  *Config
	cluster *cluster
	began   time.Time
	// plenty is not short; short and exact are.
	plenty, short, exact *stream
	// closed and open are how much was granted a second at most in a closed and in an open
	// loop, asked is how much is asked for.
	closed, open, asked float64
	calm                span
	phases              []phase
	// lost are leases that were acknowledged and are not in the log.
	lost   int
	result *Result
}

// Run disturbs, checks, and ends every process that it started. A guarantee that broke
// and a bound that was missed are in the result and no error.
func Run(ctx context.Context, c Config) (result *Result, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &run{config: &c, result: &Result{}}
	r.say("starting %d nodes", size)
	if r.cluster, err = start(ctx, &c); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.cluster.close()) }() //nolint:contextcheck // ending has its own time
	if err := r.measure(ctx); err != nil {
		return nil, fmt.Errorf("measure the load: %w", err)
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	r.judge()
	return r.result, nil
}

func (r *run) say(format string, values ...any) {
	if r.config.Progress != nil {
		fmt.Fprintf(r.config.Progress, format+"\n", values...)
	}
}

// measure finds out how much is granted a second: in a closed loop first, and then in an
// open one, which can have less, because every question comes by itself. Of buckets that are
// never short.
func (r *run) measure(ctx context.Context) error {
	const enough = 100_000
	s := &stream{
		limit: "bench-measured", keys: keyNames(keys), rate: enough, burst: 10 * enough, patience: patience,
		clients: r.cluster.clients,
	}
	if err := s.apply(ctx, r.cluster.nodes); err != nil {
		return err
	}
	if r.closed = r.closedLoop(ctx, s); r.closed == 0 {
		return errors.New("nothing was granted")
	}
	r.say("%.0f grants a second at most in a closed loop", r.closed)
	var err error
	if r.open, err = r.openLoop(ctx, s); err != nil {
		return err
	}
	r.asked = r.open * r.config.Part
	r.say("%.0f a second at most in an open one, %.0f are asked for from now on", r.open, r.asked)
	return nil
}

// closedLoop is how many grants a second callers get who ask as soon as they are answered.
func (r *run) closedLoop(ctx context.Context, s *stream) float64 {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var granted atomic.Int64
	var joined sync.WaitGroup
	for i := range r.config.Callers {
		joined.Go(func() {
			for key := i; ctx.Err() == nil; key++ {
				d, err := s.clients[i%len(s.clients)].Acquire(ctx, client.Request{Charges: []client.Charge{{
					Limit: s.limit, Key: s.keys[key%len(s.keys)], Dimension: dimension, Amount: 1,
				}}})
				if err == nil && d.Granted && d.Source != client.Local {
					granted.Add(1)
				}
			}
		})
	}
	pause(ctx, r.config.Warmup)
	before, from := granted.Load(), time.Now()
	pause(ctx, r.config.Measured)
	got, took := granted.Load()-before, time.Since(from)
	cancel()
	joined.Wait()
	return float64(got) / took.Seconds()
}

// keepsUp is the longest that one question in a hundred waits while an open loop has what it
// asks for: what comes faster than it is answered waits for longer the longer it lasts.
const keepsUp = 20 * time.Millisecond

// openLoop is how many questions a second can come, each by itself, so that they are
// answered as they come: by bisection below what the closed loop had. Where not even the
// last half of it was answered so, it is that half.
func (r *run) openLoop(ctx context.Context, s *stream) (float64, error) {
	low, high := 0.0, r.closed
	for i := range r.config.Searches {
		s.perSecond, s.history = (low+high)/2, newHistory(time.Now())
		asking, stop := context.WithTimeout(ctx, r.config.Measured)
		err := s.run(asking, r.config.Seed+uint64(i))
		stop()
		s.wait()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		// The beginning is that of clients and nodes which had nothing to do.
		of := s.history.in(span{int64(r.config.Measured) / 2, int64(r.config.Measured)})
		if of.granted == of.asked && of.waits.At(99) <= keepsUp {
			low = s.perSecond
		} else {
			high = s.perSecond
		}
	}
	if low == 0 {
		return high, nil
	}
	return low, nil
}

// streams are what is asked for from now on.
func (r *run) streams() []*stream {
	each := int64(r.asked/keys) + 1
	r.began = time.Now()
	r.plenty = &stream{
		limit: "bench-plenty", keys: keyNames(keys), perSecond: r.asked, patience: patience,
		rate: rateFor * each, burst: max(burstFor*each, 100*size*2),
	}
	r.short = &stream{
		limit: "bench-short", keys: keyNames(1), perSecond: shortPerSecond, patience: shortPatience,
		rate: shortRate, burst: shortBurst, tracked: true,
	}
	r.exact = &stream{
		limit: "bench-exact", keys: keyNames(1), perSecond: exactPerSecond, patience: shortPatience,
		rate: exactRate, burst: exactBurst, tracked: true, exact: true,
	}
	all := []*stream{r.plenty, r.short, r.exact}
	for _, s := range all {
		s.clients, s.history = r.cluster.clients, newHistory(r.began)
	}
	return all
}

// load asks, undisturbed first, and lets the faults happen meanwhile.
func (r *run) load(ctx context.Context) error {
	streams := r.streams()
	for _, s := range streams {
		if err := s.apply(ctx, r.cluster.nodes); err != nil {
			return err
		}
	}
	// What was there before is not to be cleaned up under load.
	runtime.GC()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var joined sync.WaitGroup
	failures := make([]error, len(streams))
	for i, s := range streams {
		joined.Go(func() { failures[i] = s.run(asking, r.config.Seed+uint64(i)) })
	}
	pause(ctx, r.config.Warmup)
	r.say("undisturbed")
	r.calm.from = int64(time.Since(r.began))
	pause(ctx, r.config.Calm)
	r.calm.until = int64(time.Since(r.began))
	err := r.disturb(ctx)
	stop()
	joined.Wait()
	for _, s := range streams {
		s.wait()
	}
	return errors.Join(append(failures, err)...)
}
