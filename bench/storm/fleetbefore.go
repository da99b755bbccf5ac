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

func fleetGate(seed uint64, o *Outcome) {
	play := func(o *Outcome, recheck bool) (f *fleet, opened, fast int) {
		f = newFleet(seed, o)
		var gates [instances]gate
		for i := range gates {
			for tenant := range gates[i].lines {
				gates[i].lines[tenant].free = gateWidth
			}
		}
		turn := 0
		f.serve = func(j *job, end func(bool)) {
			g := &gates[turn%instances]
			turn++
			closed := func() bool {
				if g.until[j.tenant] > f.Real() {
					fast++
					end(false)
					return true
				}
				return false
			}
			if closed() {
				return
			}
			g.lines[j.tenant].enter(func(leave func()) {
				if recheck && closed() {
					leave()
					return
				}
				f.gated(j).try(0, func(ok bool) {
					if !ok {
						g.until[j.tenant], g.opened = f.Real()+circuitFor, true
					}
					leave()
					end(ok)
				})
			})
		}
		f.play()
		for i := range gates {
			if gates[i].opened {
				opened++
			}
		}
		return f, opened, fast
	}
	f, opened, fast := play(o, false)
	f.show(o)
	o.within(PerDone, f.importer.perDone(), 13.9, 16.9)
	o.show(RefusedPart, f.importer.refused())
	o.within(OthersP95, quantile(f.waits, 0.95).Seconds(), 2, 2.1)
	o.show(OthersP99, quantile(f.waits, 0.99).Seconds())
	o.exactly(Circuits, opened, instances)
	o.within(FastFailed, float64(fast), 1900, 2100)
	o.show(HerdNow, Herd(f.importer.retries))
	checked, _, _ := play(&Outcome{}, true)
	o.within(SlippedThrough, float64(f.importer.attempts-checked.importer.attempts), 5400, 6600)
	o.within(CheckedAttempts, float64(checked.importer.attempts), 400, 640)
}

// gated is a client of an instance with a gate: it waits longer each time.
func (f *fleet) gated(j *job) *naive {
	n := f.client(j)
	n.most = gateMost
	n.delay = func(attempt int) time.Duration {
		return time.Duration(attempt)*500*time.Millisecond + f.Between(150*time.Millisecond, 900*time.Millisecond-1)
	}
	return n
}
