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

func fleetNaive(seed uint64, o *Outcome) {
	f := newFleet(seed, o)
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
	f.show(o)
	o.within(PerDone, f.importer.perDone(), 55, 66)
	o.within(RefusedPart, f.importer.refused(), 97.5, 99)
	// The import holds everybody up for 16 of 300 seconds, and again at 30: the
	// p95 lies at the edge of that, where it is steep.
	o.within(OthersP95, quantile(f.waits, 0.95).Seconds(), 5, 10)
	o.within(OthersP99, quantile(f.waits, 0.99).Seconds(), 10, 14)
	o.within(QueueMost, float64(queue.longest), 1700, 1850)
	o.show(HerdNow, Herd(f.importer.retries))
	fallback(seed, o)
}

// fallback is the same with another model that is asked on every refusal.
func fallback(seed uint64, o *Outcome) {
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
	o.within(FallbackCalls, float64(dear), 580, 710)
	o.within(FallbackPart, 100*ratio(fallbackCost*dear, fallbackCost*dear+calls), 60, 75)
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
	o.within(PerDone, g.importer.perDone(), 13.9, 16.9)
	o.show(RefusedPart, g.importer.refused())
	o.within(OthersP95, quantile(g.waits, 0.95).Seconds(), 2, 2.1)
	o.show(OthersP99, quantile(g.waits, 0.99).Seconds())
	o.exactly(Circuits, g.opened(), instances)
	o.within(FastFailed, float64(g.fast), 1900, 2100)
	o.show(HerdNow, Herd(g.importer.retries))
	checked := newGated(seed, &Outcome{}, true)
	checked.play()
	o.within(SlippedThrough, float64(g.importer.attempts-checked.importer.attempts), 5400, 6600)
	o.within(CheckedAttempts, float64(checked.importer.attempts), 400, 640)
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
