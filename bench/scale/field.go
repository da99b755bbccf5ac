package scale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench/link"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/scale/page"
	"github.com/quorlease/quorlease/bench/stat"
	"github.com/quorlease/quorlease/bench/tally"
)

// field is a limit at a cluster, with a session to every node, and what callers were
// granted of it. It is what is loaded.
type field struct {
	cluster *cluster
	keys    int
	links   []*link.Link
	tally   *tally.Tally
	// own is this process's processor time each time that the nodes' was read, each that
	// of every node.
	own  []time.Duration
	each [][]time.Duration
}

// fieldSpare is the time beside its loads for which grants of a field are noted.
const fieldSpare = 2 * time.Minute

// open applies the limit and connects. length is that of all loads together.
func (c *cluster) open(
	ctx context.Context, keys int, exact bool, timeout, length time.Duration,
) (*field, error) {
	bucket := shape(keys)
	bucket.Limit, bucket.Escrow = limitName, !exact
	if err := c.apply(ctx, keys, bucket, exact); err != nil {
		return nil, err
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = "key-" + strconv.Itoa(i)
	}
	f := &field{cluster: c, keys: keys}
	for _, address := range c.endpoints {
		l := link.New(link.Config{
			Endpoints: []string{address}, Stay: true, Session: true, Timeout: timeout, Client: clientName,
			Limit: bucket.Limit, Dimension: dimension, Keys: names,
		})
		f.links = append(f.links, l)
		if err := l.Connect(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", address, err), f.close())
		}
	}
	f.tally = tally.New(bucket, names, length+fieldSpare)
	return f, nil
}

// Asker spreads callers over the nodes.
func (f *field) Asker(index int) (load.Asker, error) { return f.links[index%len(f.links)].Asker(), nil }

// CPU is the nodes'. The callers' is noted beside it.
func (f *field) CPU() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, err
	}
	f.own = append(f.own, time.Duration(used.Utime.Nano()+used.Stime.Nano()))
	each, err := f.cluster.cpu()
	f.each = append(f.each, each)
	var sum time.Duration
	for _, one := range each {
		sum += one
	}
	return sum, err
}

// loaded is one load of a field.
type loaded struct {
	*load.Measured
	gap time.Duration
	// generator is how many processors the callers used, busiest the node that used most.
	generator, busiest float64
	// entries a second of the log.
	entries float64
}

// asking is how callers ask.
type asking struct {
	callers int
	// rate is that of an open loop; 0: each asks again at once.
	rate   float64
	warmup time.Duration
	seed   uint64
}

// load lets callers ask.
func (f *field) load(ctx context.Context, c *Config, a asking) (*loaded, error) {
	watch := newGaps(c.Length)
	f.own, f.each = nil, nil
	m, err := load.Run(ctx, &load.Config{
		Callers: a.callers, Rate: a.rate, Keys: f.keys, Distribution: stat.Uniform, Arrivals: stat.Poisson,
		Timeout: c.Timeout, Seed: c.Seed + a.seed, Warmup: a.warmup, Length: c.Length, Reason: link.Reason,
		OnTime: load.KeepTime,
		Began:  watch.began,
		Grant: func(key int, sent, ended time.Time) {
			f.tally.Grant(key, sent, ended)
			watch.grant(ended)
		},
	}, f)
	if err != nil {
		return nil, err
	}
	l := &loaded{Measured: m, gap: watch.end()}
	if len(f.own) == 2 {
		l.generator = (f.own[1] - f.own[0]).Seconds() / c.Length.Seconds()
		for i := range f.each[0] {
			l.busiest = max(l.busiest, (f.each[1][i]-f.each[0][i]).Seconds()/c.Length.Seconds())
		}
	}
	return l, nil
}

// round is what was measured, as it is shown.
func (l *loaded) round(length time.Duration) page.Round {
	return page.Round{
		Side: l.Report(length), Generator: l.generator, Busiest: l.busiest, Entries: l.entries, Gap: ms(l.gap),
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// check holds everything that was granted to G1 and G2, and ends the leader to read its
// log. of says what was measured.
func (f *field) check(ctx context.Context, of string) ([]report.Check, error) {
	ctx, cancel := context.WithTimeout(ctx, formWait)
	defer cancel()
	slack, err := f.tally.Slack(ctx, f.cluster.endpoints)
	if err != nil {
		return nil, err
	}
	if err := f.close(); err != nil {
		return nil, err
	}
	outside, err := f.tally.Outside(slack, false)
	if err != nil {
		return nil, err
	}
	// Whoever leads has every entry that was acknowledged.
	nodes := f.cluster.nodes
	leader, err := nodes.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if err := nodes.Stop(leader, stopWait); err != nil {
		return nil, err
	}
	inside, err := tally.Log(nodes, leader, true, f.tally)
	checks := append(outside, inside...)
	for i := range checks {
		checks[i].By += " (" + of + ")"
	}
	return checks, err
}

// close ends the sessions. It may be called again.
func (f *field) close() error {
	var errs []error
	for _, l := range f.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
