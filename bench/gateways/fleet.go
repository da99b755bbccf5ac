package gateways

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
)

// The fleet: forty instances, a tenant with an import of 2,000 jobs in the first second,
// every fifth of them twice, and four tenants that send one request a second.
const (
	fleetInstances = 40
	fleetJobs      = 2000
	fleetTwice     = 5
	fleetOthers    = 4
	fleetLength    = 300 * time.Second
	fleetTakes     = 2 * time.Second
	// fleetMinute is what the provider lets each tenant do.
	fleetMinute = 600
	importer    = "tenant-0"
	fleetRoute  = "/v1/chat/completions"
	fleetInput  = 50
	fleetOutput = 16
)

func (h *House) fleetSetting() *Setting {
	return &Setting{
		Gateways: fleetInstances, Nodes: 3,
		Limits: fmt.Sprintf(`limits:
- name: tenant
  match: {tenant: "*"}
  per: [tenant]
  target: 90%%
  rate: {requests: %s}
  burst: {requests: 9}
  queue: {max_wait: 10m}
- name: tenant-gate
  match: {tenant: "*"}
  per: [tenant]
  concurrency: 32
  queue: {max_wait: 10m}
`, h.rate(fleetMinute)) + h.budgets(),
		File: func(to string) string {
			return fmt.Sprintf("deployments: [{name: main, provider: openai, upstream: %q}]\n"+
				"classes: [{name: jobs, max_wait: %v}]\n", to, h.time(10*time.Minute, time.Second))
		},
		// Each tenant has an account of its own; those are looked at in the ledger.
		Provider: upstream.Config{
			API: upstream.OpenAI, Seed: h.Seed, Latency: fleetTakes, OutputTokens: fleetOutput, LedgerMax: 1_000_000,
		},
	}
}

// fleet is one that is played.
type fleet struct {
	*crowd
	// gone is the number of the instance that was killed, from 1. 0: none.
	gone atomic.Int64

	mu      sync.Mutex
	answers map[int]int // guarded by mu; how often each of the importer's jobs was answered
	drained time.Duration
}

func tenant(n int) string { return fmt.Sprintf("tenant-%d", n) }

// playFleet plays it to its end; faults may go wrong meanwhile.
func (h *House) playFleet(ctx context.Context, stage Stage, faults func(*fleet)) (*fleet, upstream.Ledger, error) {
	f := &fleet{crowd: newCrowd(ctx, h, stage), answers: map[int]int{}}
	for job := range h.part(fleetJobs) {
		at := f.between(0, time.Second)
		copies := 1
		if job%fleetTwice == 0 {
			copies = 2
		}
		for range copies {
			f.programs.Go(func() {
				if f.until(at) {
					f.deliver(job)
				}
			})
		}
	}
	for n := range fleetOthers {
		client := tenant(1 + n)
		f.come(f.poisson(60, 0, h.span(fleetLength)), func() bool { return true }, func(number int) {
			f.ask(number, client)
		})
	}
	if faults != nil {
		f.programs.Go(func() { faults(f) })
	}
	l, err := f.finish()
	return f, l, err
}

// deliver sends a job. Equal jobs come to the same instance, as behind a balancer that goes
// by what they are.
func (f *fleet) deliver(job int) {
	s := f.ask(job, importer)
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.ok() {
		f.answers[job]++
		f.drained = max(f.drained, s.ended)
	}
}

// ask sends a piece of work to the instance that it belongs to, or if that dies to the next.
func (f *fleet) ask(number int, client string) (s sent) {
	w := work{client: client, attempt: -1, path: fleetRoute, body: chat(client, number, fleetInput, fleetOutput)}
	for {
		instance := number % fleetInstances
		if int(f.gone.Load()) == instance+1 {
			instance = (instance + 1) % fleetInstances
		}
		if s = f.send(instance, w); s.status != 0 || f.ctx.Err() != nil {
			return s
		}
	}
}

// served is how long the other tenants' requests took that were served.
func (f *fleet) served() (took []time.Duration) {
	all := f.all()
	for i := range all {
		if all[i].client != importer && all[i].ok() {
			took = append(took, all[i].took())
		}
	}
	return took
}

// beyond is how many of the calls a tenant's account would have refused: a bucket of a
// second at the provider.
func beyond(calls []upstream.Call) (n int) {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b upstream.Call) int { return int(a.Arrived - b.Arrived) })
	account := provider.NewBuckets(provider.Limits{Requests: fleetMinute}, provider.Options{Capacity: time.Second})
	for i := range calls {
		if !account.Ask(calls[i].Arrived, provider.Call{}).OK {
			n++
		}
	}
	return n
}

func fleetOurs(ctx context.Context, h *House, o *storm.Outcome) error {
	return h.on(ctx, h.fleetSetting(), func(stage Stage) error {
		f, l, err := h.playFleet(ctx, stage, nil)
		if err != nil {
			return err
		}
		jobs := h.part(fleetJobs)
		calls := by(&l, importer)
		no := 0
		waits := f.served()
		for n := range 1 + fleetOthers {
			no += beyond(by(&l, tenant(n)))
		}
		asked := len(f.of(importer))
		takes := float64(jobs-9)/9 + fleetTakes.Seconds()
		h.exactly(o, storm.Attempts, len(calls), jobs)
		h.within(o, storm.PerDone, float64(len(calls))/float64(max(1, len(f.answers))), 1, 1)
		h.exactly(o, storm.Unique, len(f.answers), jobs)
		h.exactly(o, storm.Coalesced, asked-len(calls), (jobs+fleetTwice-1)/fleetTwice)
		h.exactly(o, unheard, asked-answered(f.of(importer)), 0)
		h.exactly(o, storm.ProviderNo, no, 0)
		h.within(o, storm.Drained, f.drained.Seconds(), takes-3.2, takes+6.8+h.Slack.Seconds())
		h.within(o, storm.OthersP95, quantile(waits, 0.95), 2, 2.1+h.Slack.Seconds())
		h.within(o, storm.OthersP99, quantile(waits, 0.99), 2, 2.1+h.Slack.Seconds())
		f.picture(o, &l, 500*time.Millisecond, min(f.Now(), 240*time.Second))
		return nil
	})
}
