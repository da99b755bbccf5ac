package storm

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

const (
	fallbackMinute = 1200
	fallbackTime   = 2 * time.Second
	// fallbackCost is what a call of the fallback costs, in calls of the model.
	fallbackCost = 5
)

// naiveRuns is how many are played for what other tenants wait: their p95 lies
// where the waits of one run fall from 13 seconds to two.
const naiveRuns = 8

func fleetNaive(seed uint64, o *Outcome) {
	f, longest := playNaive(seed, o)
	f.show(o)
	all, _ := f.executed()
	o.within(Successes, float64(all), 355, 363)
	o.within(PerDone, f.importer.perDone(), 60.6*0.98, 60.6*1.02)
	o.within(RefusedPart, f.importer.refused(), 97.5, 98.5)
	waits := f.waits
	for i := range uint64(naiveRuns - 1) {
		other, _ := playNaive(seed+(i+1)<<32, &Outcome{})
		waits = append(waits, other.waits...)
	}
	o.within(OthersP95, quantile(waits, 0.95).Seconds(), 6.5, 8.1)
	o.within(OthersP99, quantile(waits, 0.99).Seconds(), 12.2, 13.6)
	o.within(QueueMost, float64(longest), 1750, 1790)
	o.show(HerdNow, Herd(f.importer.retries))
	elsewhere(seed, o)
}

// playNaive is the fleet as it was, and how long its queue became.
func playNaive(seed uint64, o *Outcome) (f *fleet, longest int) {
	f = newFleet(seed, o)
	queue := &line{free: instances * instanceSlot}
	f.serve = func(j *job, end func(bool)) {
		queue.enter(func(leave func()) {
			f.client(j).try(0, func(ok bool) {
				leave()
				end(ok)
			})
		})
	}
	f.play()
	return f, queue.longest
}

// elsewhere is the same with another model that is asked on every refusal.
func elsewhere(seed uint64, o *Outcome) {
	f := newFleet(seed, o)
	other := provider.NewBuckets(provider.Limits{Requests: fallbackMinute}, provider.Options{Capacity: time.Second})
	queue := &line{free: instances * instanceSlot}
	calls, dear := 0, 0
	var try func(n *naive, attempt int, end func(bool))
	try = func(n *naive, attempt int, end func(bool)) {
		if n.model.Ask(f.Real(), n.call).OK {
			calls++
			f.At(nil, n.success, func() { end(true) })
			return
		}
		f.At(nil, n.refusal, func() {
			switch {
			case other.Ask(f.Real(), n.call).OK:
				dear++
				f.At(nil, fallbackTime, func() { end(true) })
			case attempt+1 == n.most:
				f.At(nil, n.refusal, func() { end(false) })
			default:
				f.At(nil, n.refusal+n.delay(attempt+1), func() { try(n, attempt+1, end) })
			}
		})
	}
	f.serve = func(j *job, end func(bool)) {
		queue.enter(func(leave func()) {
			try(f.client(j), 0, func(ok bool) {
				leave()
				end(ok)
			})
		})
	}
	f.play()
	o.within(FallbackCalls, float64(dear), 644*0.96, 644*1.04)
	o.within(FallbackPart, 100*ratio(fallbackCost*dear, fallbackCost*dear+calls), 65, 70)
}

const (
	gateWidth  = 4
	gateMost   = 3
	circuitFor = 30 * time.Second
)

// gate is one instance's part: a line and a circuit for each tenant.
type gate struct {
	lines  [1 + others]line
	until  [1 + others]time.Duration
	opened bool
}

// gated is the fleet with a gate in each instance.
type gated struct {
	*fleet
	gates [instances]gate
	// recheck: the circuit is looked at after the wait, too.
	recheck bool
	turn    int
	fast    int
}

func newGated(seed uint64, o *Outcome, recheck bool) *gated {
	g := &gated{fleet: newFleet(seed, o), recheck: recheck}
	for i := range g.gates {
		for tenant := range g.gates[i].lines {
			g.gates[i].lines[tenant].free = gateWidth
		}
	}
	g.serve = g.work
	return g
}

// failsFast ends a job where its circuit is open.
func (g *gated) failsFast(at *gate, j *job, end func(bool)) bool {
	if at.until[j.tenant] <= g.Real() {
		return false
	}
	g.fast++
	end(false)
	return true
}

func (g *gated) work(j *job, end func(bool)) {
	at := &g.gates[g.turn%instances]
	g.turn++
	if g.failsFast(at, j, end) {
		return
	}
	at.lines[j.tenant].enter(func(leave func()) {
		if g.recheck && g.failsFast(at, j, end) {
			leave()
			return
		}
		g.patient(j).try(0, func(ok bool) {
			if !ok {
				at.until[j.tenant], at.opened = g.Real()+circuitFor, true
			}
			leave()
			end(ok)
		})
	})
}

func (g *gated) opened() (n int) {
	for i := range g.gates {
		if g.gates[i].opened {
			n++
		}
	}
	return n
}

func fleetGate(seed uint64, o *Outcome) {
	g := newGated(seed, o, false)
	g.play()
	g.show(o)
	all, _ := g.executed()
	o.within(Successes, float64(all), 420*0.95, 420*1.05)
	o.within(PerDone, g.importer.perDone(), 15.4*0.96, 15.4*1.04)
	o.show(RefusedPart, g.importer.refused())
	o.within(OthersP95, quantile(g.waits, 0.95).Seconds(), 2, 2.1)
	o.show(OthersP99, quantile(g.waits, 0.99).Seconds())
	o.exactly(Circuits, g.opened(), instances)
	o.within(FastFailed, float64(g.fast), 2006*0.975, 2006*1.025)
	o.show(HerdNow, Herd(g.importer.retries))
	checked := newGated(seed, &Outcome{}, true)
	checked.play()
	o.within(SlippedThrough, float64(g.importer.attempts-checked.importer.attempts), 5900, 6100)
	o.within(CheckedAttempts, float64(checked.importer.attempts), 464*0.97, 464*1.03)
	done, _ := checked.executed()
	o.within(CheckedDone, float64(done), 42, 52)
}

// patient is a client of an instance with a gate: it waits longer each time.
func (f *fleet) patient(j *job) *naive {
	n := f.client(j)
	n.most = gateMost
	n.delay = func(attempt int) time.Duration {
		return time.Duration(attempt)*500*time.Millisecond + f.Between(150*time.Millisecond, 900*time.Millisecond-1)
	}
	return n
}
