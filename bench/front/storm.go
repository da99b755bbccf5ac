package front

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/stat"
)

// Storm is what became of everybody while one client retried without end.
type Storm struct {
	Pairs []Pair `json:"pairs"`
	// Heap are looks at the gateway's memory while the client stormed without a pause.
	Heap []Heap `json:"heap"`
	// Refusals and Others are what it was told in that time, and what others saw.
	Refusals Timed `json:"refusals"`
	Others   Timed `json:"others"`
}

// Pair is a time with the storm and one without.
type Pair struct {
	// Refusals are what the client that stormed was told, With and Without what the others
	// saw meanwhile.
	Refusals Timed `json:"refusals"`
	With     Timed `json:"with"`
	Without  Timed `json:"without"`
}

// Heap is one look at the gateway's memory.
type Heap struct {
	// At is when, from the beginning of the storm, in s.
	At float64 `json:"at_s"`
	// Collected is the heap at which it collects next, which follows from what was alive when
	// it did last; Resident is what it has of the machine. Both in MB.
	Collected float64 `json:"next_gc_mb"`
	Resident  float64 `json:"resident_mb"`
}

const (
	// stormers and calm are how many callers the client that storms has, and the others.
	stormers, calm = 16, 32
	// looks is how often the memory is looked at, at most, and looked at no sooner than
	// looksEvery again.
	looks      = 120
	looksEvery = 100 * time.Millisecond
	// spare is how many of the calls of a storm may be let through: those that the budget
	// leaves to anybody.
	spare = 0.02
)

// storming is the client that retries.
func (p *place) storming() *door {
	d := p.front(plain)
	// What retries says so, as most SDKs do, and asks for the same again.
	d.header += "X-Stainless-Retry-Count: 1\r\n"
	d.client, d.clients, d.cpu = "storm", 0, nil
	same := chat(plain)(nil)
	d.body = func(to []byte) []byte { return append(to, same...) }
	return d
}

// others are everybody else.
func (p *place) others() *door {
	d := p.front(plain)
	// What the gateway does is done for both.
	d.client, d.cpu = "calm-", nil
	return d
}

// storm measures pairs, and then storms for a while.
func (p *place) storm(ctx context.Context) (*Storm, error) {
	c := p.config
	s := &Storm{}
	if err := p.spend(ctx); err != nil {
		return nil, err
	}
	for n := range c.Rounds {
		pair, err := p.pair(ctx, n%2 == 1)
		if err != nil {
			return nil, fmt.Errorf("storm, round %d: %w", n+1, err)
		}
		s.Pairs = append(s.Pairs, pair)
		c.say("storm, round %d of %d: p99 of refusals %.2f ms, of others %.2f ms, without it %.2f ms", n+1, c.Rounds,
			pair.Refusals.P99, pair.With.P99, pair.Without.P99)
	}
	c.say("a storm of %v", c.Steady)
	return s, p.steady(ctx, s)
}

// spend uses up the client's retry budget.
func (p *place) spend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	d := p.storming()
	defer d.close()
	caller, err := d.Asker(0)
	if err != nil {
		return err
	}
	for {
		answer, err := caller.Ask(ctx, 0)
		if err != nil {
			return fmt.Errorf("use up a retry budget: %w", err)
		}
		if !answer.Granted && d.elsewhere.Load() == 0 {
			return nil
		}
		d.elsewhere.Store(0)
	}
}

// pair measures both halves. Which is first changes.
func (p *place) pair(ctx context.Context, turned bool) (pair Pair, err error) {
	for _, with := range []bool{turned, !turned} {
		if with {
			pair.With, pair.Refusals, err = p.both(ctx, p.config.Length)
		} else {
			pair.Without, err = p.calm(ctx, p.config.Length)
		}
		if err != nil {
			return pair, err
		}
	}
	return pair, nil
}

// calm is what others see.
func (p *place) calm(ctx context.Context, length time.Duration) (Timed, error) {
	d := p.others()
	defer d.close()
	config := p.config.load(calm, p.config.Others)
	config.Length = length
	m, err := load.Run(ctx, &config, d)
	if err != nil {
		return Timed{}, err
	}
	t, err := timed(m, length)
	if err == nil && t.Granted < t.Answers {
		err = fmt.Errorf("%d of %d calls of others were refused", t.Answers-t.Granted, t.Answers)
	}
	return t, err
}

// both is what others and the client that storms see at the same time.
func (p *place) both(ctx context.Context, length time.Duration) (others, refusals Timed, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var joined sync.WaitGroup
	var stormed error
	joined.Go(func() {
		if refusals, stormed = p.retry(ctx, length); stormed != nil {
			cancel()
		}
	})
	others, err = p.calm(ctx, length)
	if err != nil {
		cancel()
	}
	joined.Wait()
	// The one that failed first has ended the other one.
	return others, refusals, errors.Join(stormed, err)
}

// retry storms.
func (p *place) retry(ctx context.Context, length time.Duration) (Timed, error) {
	d := p.storming()
	defer d.close()
	config := p.config.load(stormers, p.config.Storm)
	// As a loop with a fixed delay comes.
	config.Length, config.Arrivals, config.Seed = length, stat.Even, p.config.Seed+1
	m, err := load.Run(ctx, &config, d)
	if err != nil {
		return Timed{}, err
	}
	t, err := timed(m, length)
	switch elsewhere := d.elsewhere.Load(); {
	case err != nil:
	case float64(t.Granted) > max(spare*float64(t.Answers), budget):
		err = fmt.Errorf("%d of %d calls of the storm were let through", t.Granted, t.Answers)
	case elsewhere > 0:
		err = fmt.Errorf("%d calls of the storm were refused, and not for their retries", elsewhere)
	}
	return t, err
}

// budget is how many retries the budget lets through whatever happens, in its window.
const budget = 50

// steady storms without a pause, and looks at the gateway's memory.
func (p *place) steady(ctx context.Context, s *Storm) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var joined sync.WaitGroup
	var watched error
	began := time.Now()
	joined.Go(func() { s.Heap, watched = p.watch(ctx, began) })
	var err error
	s.Others, s.Refusals, err = p.both(ctx, p.config.Steady)
	cancel()
	joined.Wait()
	return errors.Join(err, watched)
}

// watch looks at the gateway's memory until ctx ends.
func (p *place) watch(ctx context.Context, began time.Time) (seen []Heap, err error) {
	tick := time.NewTicker(max(looksEvery, p.config.Steady/looks))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return seen, nil
		}
		one, err := p.memory(ctx)
		if ctx.Err() != nil {
			return seen, nil
		}
		if err != nil {
			return seen, fmt.Errorf("look at the gateway's memory: %w", err)
		}
		one.At = time.Since(began).Seconds()
		seen = append(seen, one)
	}
}

// The gateway's own figures, in bytes.
const (
	nextMetric     = "go_memstats_next_gc_bytes"
	residentMetric = "process_resident_memory_bytes"
	// metricsMost bounds how much is read of them.
	metricsMost = 4 << 20
)

func (p *place) memory(ctx context.Context) (h Heap, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.admin+"/metrics", nil)
	if err != nil {
		return h, err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return h, err
	}
	defer answer.Body.Close()
	err = h.read(io.LimitReader(answer.Body, metricsMost))
	return h, err
}

// read finds both in what a gateway exports.
func (h *Heap) read(text io.Reader) error {
	found := 0
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		to := map[string]*float64{nextMetric: &h.Collected, residentMetric: &h.Resident}[name]
		if to == nil {
			continue
		}
		bytes, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		*to = bytes / 1e6
		found++
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if found != 2 {
		return fmt.Errorf("it has not both of %s and %s", nextMetric, residentMetric)
	}
	return nil
}
