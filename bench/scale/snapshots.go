package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/scale/page"
	"github.com/quorlease/quorlease/bench/stat"
	"github.com/quorlease/quorlease/client/session"
)

const (
	// stateLimit has the buckets that make the state large.
	stateLimit = "bench-scale-state"
	// dueSoon are so few entries between two snapshots that one is due whenever a node
	// looks, which is every 10 to 20 s.
	dueSoon = "100"
	// unfinished ends the name of a snapshot that is being written.
	unfinished = ".tmp"
	// snapshotWait is how long nodes may take to make one each.
	snapshotWait = 45 * time.Second
	// fillCharges are as many as one acquire may have; fillers send them.
	fillCharges, fillers = 16, 128
	fillWait             = 2 * time.Minute
)

// snapshots measures what snapshots cost those who wait for entries, while the state of
// one cluster grows.
func (r *run) snapshots(ctx context.Context) (err error) {
	sizes := slices.Sorted(slices.Values(r.config.Buckets))
	c, err := r.start(ctx, votersMost, nil, "--snapshot-threshold", dueSoon)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	f, err := c.open(ctx, fewKeys, true, r.config.Timeout, time.Duration(len(sizes))*2*snapshotWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	state := shape(keysMost)
	state.Limit = stateLimit
	if err := c.apply(ctx, sizes[len(sizes)-1], state, true); err != nil {
		return err
	}
	filled := 0
	for _, size := range sizes {
		// Those of the load are in the state too.
		more := size - fewKeys
		r.say("filling the state to %s buckets", plot.Grouped(int64(size)))
		if err := c.fill(ctx, filled, more); err != nil {
			return fmt.Errorf("fill the state: %w", err)
		}
		filled = more
		one, err := r.during(ctx, c, f, size)
		if err != nil {
			return fmt.Errorf("%d buckets: %w", size, err)
		}
		r.result.Snapshots = append(r.result.Snapshots, *one)
	}
	return r.note(f.check(ctx, "snapshots"))
}

// during loads until every node has taken a snapshot.
func (r *run) during(ctx context.Context, c *cluster, f *field, size int) (*page.Snapshot, error) {
	before, err := c.exported(ctx)
	if err != nil {
		return nil, err
	}
	all := &load.Measured{Latencies: stat.NewLatencies(), Failures: map[string]int64{}}
	var length time.Duration
	var taken []exported
	var bytes int64
	// A snapshot that was taken is also to be written meanwhile.
	for began, done := time.Now(), false; !done && time.Since(began) < snapshotWait; {
		l, err := f.load(ctx, r.config, asking{callers: snapshotCallers, seed: uint64(length)})
		if err != nil {
			return nil, err
		}
		length += r.config.Length
		merge(all, l.Measured)
		now, err := c.exported(ctx)
		if err != nil {
			return nil, err
		}
		if bytes, err = c.snapshotBytes(ctx, began); err != nil {
			return nil, err
		}
		taken, done = nil, bytes > 0
		for i := range now {
			one := now[i].since(&before[i])
			taken, done = append(taken, one), done && one.count > 0
		}
	}
	one := &page.Snapshot{At: int64(size), Callers: snapshotCallers, Bytes: bytes, During: all.Report(length)}
	var sum time.Duration
	for i := range taken {
		one.Taken += taken[i].count
		sum += taken[i].sum
		one.PauseMost = max(one.PauseMost, ms(taken[i].longest()))
	}
	if one.Taken > 0 {
		one.PauseMean = ms(sum) / float64(one.Taken)
	}
	r.say("%s buckets: %d snapshots, longest pause %.2f ms, longest answer %.2f ms",
		plot.Grouped(one.At), one.Taken, one.PauseMost, one.During.Max)
	return one, nil
}

// merge adds a load to others of the same callers. The timeline is left out.
func merge(all, one *load.Measured) {
	all.Granted += one.Granted
	all.Denied += one.Denied
	all.Failed += one.Failed
	all.Local += one.Local
	all.Escrow += one.Escrow
	all.Latencies.Add(one.Latencies)
	for reason, count := range one.Failures {
		all.Failures[reason] += count
	}
	if all.PerCaller == nil {
		all.PerCaller = make([]int64, len(one.PerCaller))
	}
	for i, granted := range one.PerCaller {
		all.PerCaller[i] += granted
	}
}

// snapshotBytes is the size of the leader's newest snapshot of after a time, 0 where it
// has none.
func (c *cluster) snapshotBytes(ctx context.Context, after time.Time) (int64, error) {
	leader, err := c.nodes.Leader(ctx)
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(c.nodes.Data(leader), "snapshots", "*", "state.bin"))
	if err != nil {
		return 0, err
	}
	newest, size := after, int64(0)
	for _, file := range files {
		if strings.HasSuffix(filepath.Dir(file), unfinished) {
			continue
		}
		// One that was replaced meanwhile is not the newest.
		if about, err := os.Stat(file); err == nil && about.ModTime().After(newest) {
			newest, size = about.ModTime(), about.Size()
		}
	}
	return size, nil
}

// fill takes a token from each key of the large limit, from one to before another.
func (c *cluster) fill(ctx context.Context, from, to int) error {
	ctx, cancel := context.WithTimeout(ctx, fillWait)
	defer cancel()
	leader, err := c.nodes.Leader(ctx)
	if err != nil {
		return err
	}
	conn, err := bench.Dial(c.nodes.GRPC(leader))
	if err != nil {
		return err
	}
	defer conn.Close()
	return fillBy(ctx, conn, from, to)
}

func fillBy(ctx context.Context, conn *grpc.ClientConn, from, to int) error {
	s, err := session.Open(ctx, conn, session.Hello{Client: clientName, SessionID: bench.NewID()})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	next.Store(int64(from))
	var joined sync.WaitGroup
	for range fillers {
		joined.Go(func() {
			for {
				first := int(next.Add(fillCharges)) - fillCharges
				if first >= to || ctx.Err() != nil {
					return
				}
				if err := fillOne(ctx, s, first, min(first+fillCharges, to)); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	joined.Wait()
	return context.Cause(ctx)
}

func fillOne(ctx context.Context, s *session.Session, from, to int) error {
	request := &quorleasev1.AcquireRequest{Client: clientName}
	for key := from; key < to; key++ {
		request.Charges = append(request.Charges, &quorleasev1.Charge{
			Limit: stateLimit, Key: "state-" + strconv.Itoa(key), Dimension: dimension, Amount: 1,
		})
	}
	item, err := s.Do(ctx, &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{Acquire: request}})
	if err != nil {
		return err
	}
	if answer := item.GetAcquire(); answer.GetDecision() != quorleasev1.Decision_GRANTED {
		return fmt.Errorf("keys %d to %d: %v", from, to-1, answer)
	}
	return nil
}
