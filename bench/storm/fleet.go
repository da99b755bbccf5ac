package storm

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// fleetStorms are those of forty instances of one gateway.
func fleetStorms() []Scenario {
	return []Scenario{
		{
			Slug: "s2-naive", Title: "forty instances try again after a fixed second",
			Text: "A tenant sends 2,000 jobs in a second, a fifth of them twice, into a queue that 640 workers share with " +
				"four other tenants. Five attempts; what failed comes once more at 30 s. Then the same with a fallback on " +
				"the first refusal.",
			run: fleetNaive,
		},
		{
			Slug: "s2-seedgate", Title: "a gate of four and a circuit in each instance",
			Text: "Three attempts with growing, random delays; a circuit that opens for 30 s. It is looked at before the wait " +
				"at the gate, and then also after it.",
			run: fleetGate,
		},
		{
			Slug: "s2-ours", Title: "one bucket and one gate for the fleet, and a lease id that is the hash of the work",
			Text: "Nine tenths of the provider's limit for each tenant, 32 calls in flight; nobody tries again, equal jobs " +
				"are one. And for a minute with a gate of four. Then with jobs that wait 20 s at a time, and another " +
				"model by the rule of gateways, for a fifth of the money.",
			Twins: []string{"s2-naive", "s2-seedgate"},
			run:   fleetOurs,
		},
	}
}

const (
	instances    = 40
	instanceSlot = 16
	importJobs   = 2000
	// twice is how many jobs there are for one that comes twice.
	twice = 5
	// redelivered is when the queue gives out what failed once more.
	redelivered = 30 * time.Second
	fleetLength = 300 * time.Second
	fleetTask   = 2 * time.Second
	// tenantMinute is what the provider lets each tenant do.
	tenantMinute = 600
	othersMinute = 60
	others       = 4
	// importer is the tenant with the import; the others are numbered from 1.
	importer = 0
)

// job is one piece of work.
type job struct {
	tenant int
	// hash says which jobs are equal.
	hash  int
	came  time.Duration
	again bool
}

// fleet is the work, and what became of it.
type fleet struct {
	world
	models [1 + others]provider.Model
	// serve works on a job and says how it ended.
	serve func(j *job, end func(ok bool))

	importer tally
	// done counts how often each of the importer's jobs was done.
	done    map[int]int
	drained time.Duration
	// waits are the times from coming to being served, of the other tenants.
	waits []time.Duration
}

func newFleet(seed uint64, o *Outcome) *fleet {
	f := &fleet{world: newWorld(seed), done: make(map[int]int)}
	for tenant := range f.models {
		limits := provider.Limits{Requests: tenantMinute}
		f.models[tenant] = provider.NewBuckets(limits, provider.Options{Capacity: time.Second})
	}
	f.models[importer] = o.watch(f.models[importer], 500*time.Millisecond, 240*time.Second)
	return f
}

// imports lets the importer's jobs come.
func (f *fleet) imports() {
	for i := range importJobs {
		at := f.Between(0, time.Second)
		copies := 1
		if i%twice == 0 {
			copies = 2
		}
		for range copies {
			f.At(nil, at, func() { f.deliver(&job{tenant: importer, hash: i, came: at}) })
		}
	}
}

// play lets everything come and waits for the end of it.
func (f *fleet) play() {
	f.imports()
	for tenant := 1; tenant <= others; tenant++ {
		f.poisson(othersMinute, fleetLength, func() { f.deliver(&job{tenant: tenant, came: f.Real()}) })
	}
	f.until(fleetLength + 100*time.Second)
}

func (f *fleet) deliver(j *job) {
	f.serve(j, func(ok bool) {
		switch {
		case ok && j.tenant == importer:
			f.done[j.hash]++
			f.drained = f.Real()
		case ok:
			f.waits = append(f.waits, f.Real()-j.came)
		case !j.again:
			j.again = true
			f.At(nil, redelivered-f.Real(), func() { f.deliver(j) })
		}
	})
}

// executed is how many jobs were done, and how many of them had been done
// before.
func (f *fleet) executed() (all, again int) {
	for _, n := range f.done {
		all += n
	}
	return all, all - len(f.done)
}

// client is one that works on the job.
func (f *fleet) client(j *job) *naive {
	n := &naive{
		world: f.world, model: f.models[j.tenant], most: 5,
		refusal: provider.RefusalTime, success: fleetTask, delay: fixed(time.Second),
	}
	if j.tenant == importer {
		n.seen = f.importer.of(f.world)
	}
	return n
}

// show adds figures that may be anything before.
func (f *fleet) show(o *Outcome) {
	all, again := f.executed()
	o.show(Attempts, float64(f.importer.attempts))
	o.show(Unique, float64(len(f.done)))
	o.show(Executed, float64(all))
	o.within(Duplicates, float64(again), 1, open)
}

// line is a queue that many workers share, first come, first served.
type line struct {
	free    int
	waiting []func(leave func())
	longest int
}

// enter runs work when a worker is free; work says when it leaves.
func (l *line) enter(work func(leave func())) {
	l.waiting = append(l.waiting, work)
	l.next()
	l.longest = max(l.longest, len(l.waiting))
}

func (l *line) next() {
	for l.free > 0 && len(l.waiting) > 0 {
		work := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.free--
		work(func() {
			l.free++
			l.next()
		})
	}
}
