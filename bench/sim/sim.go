// Package sim runs the authority and its clients in virtual time: one seed is one
// run.
//
// The state machine, the estimate of authority time and the arithmetic of
// buckets are the real ones. Around them are models: a small Raft, a network that
// loses, delays, reorders and repeats, machines that crash, sleep and drift,
// clients that hold leases, spend them by their own clocks and decide by
// themselves while nobody answers. A judge, who sees all of it, checks after
// every step what is promised.
//
// A harness that has never caught anything proves nothing: each Trap is a known
// mistake that a run can be made to contain.
package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

// Options are what one run is.
type Options struct {
	Seed uint64
	Trap trap.Kind
}

// Outcome is how a run went.
type Outcome struct {
	Options
	Stats tally.Stats
	// Broken is nil where all that is promised held.
	Broken *judge.Violation
	// At is the real time at the end.
	At time.Duration
	// Print is a sum over the run, the same for the same seed.
	Print uint64

	world *World
}

// Tail is the last n lines of what happened.
func (o *Outcome) Tail(n int) string { return strings.Join(o.world.stage.Tail(n), "\n") }

func (o *Outcome) String() string {
	if o.Broken == nil {
		return fmt.Sprintf("seed=%d trap=%q: held; %+v", o.Seed, o.Trap, o.Stats)
	}
	return fmt.Sprintf("seed=%d trap=%q: at %v %v", o.Seed, o.Trap, o.At, o.Broken)
}

const (
	// quietFor is how long, after the faults, everything has to be well again;
	// in the last drainFor of it nobody asks for anything new.
	quietFor = 16 * time.Second
	drainFor = 8 * time.Second
	// startFor is how long a world has before the first fault.
	startFor = 4 * time.Second
	// lagMost is how many entries may be under way to a node at any moment.
	lagMost = 3
)

// GCPercent is what a program that does many runs sets the garbage collector to
// (debug.SetGCPercent): a run keeps a few megabytes and throws away fifty, and to collect
// each time as much has come again as is kept is a third of all work. With two runs at a
// time a process takes less than 200 MB.
const GCPercent = 800

// Run is one run: a time with faults, in which nothing promised may break, and
// one without, in which everything must work again.
func Run(options Options) *Outcome {
	w := newWorld(options.Seed, options.Trap)
	w.stage.OnStep = func() { w.stats.Elections, w.stats.Installs = w.group.Elections, w.group.Installs }
	w.begin()
	broken := func() bool { return w.judge.Broken != nil }
	end := startFor + w.weather()
	w.stage.At(nil, startFor, func() { w.faulty = true })
	w.stage.At(nil, end, w.heal)
	w.stage.At(nil, end+quietFor-drainFor, func() { w.busy = false })
	// What was still under way has come by then.
	w.stage.At(nil, end+quietFor-drainFor/2, w.clearAll)
	w.stage.Run(end+quietFor, broken)
	if !broken() {
		w.settled()
	}
	return &Outcome{
		Options: options, Stats: w.stats, Broken: w.judge.Broken, At: w.stage.Real(), Print: w.print(), world: w,
	}
}

// print sums up the run: what is the same twice was the same all the way.
func (w *World) print() uint64 {
	sum := uint64(w.stage.Rand.Int64())
	for _, n := range w.present {
		sum = sum*31 + n.replica.Hash()
	}
	return sum*31 + uint64(w.stats.Requests)
}

// settled checks what must be so in the end.
func (w *World) settled() {
	for _, n := range w.present {
		switch {
		case w.members != nil && !w.members.Belongs(n.id):
		case n.replica.Index()+lagMost < w.last:
			w.judge.Complain("liveness", "%s has applied %d of %d", n.host.Name, n.replica.Index(), w.last)
		case n.replica.Hash() != n.replica.Recount():
			w.judge.Complain("G9", "the hash of %s is %016x, the recount %016x", n.host.Name, n.replica.Hash(),
				n.replica.Recount())
		}
	}
	for _, c := range w.clients {
		if c.fallback.Away() {
			w.judge.Complain("liveness", "%s decides by itself %v after the faults", c.name, quietFor)
		}
	}
	if w.members != nil {
		w.members.Settled()
	}
	w.judge.Reported()
	// With a voter gone for good it may take long until somebody leads.
	late := w.members != nil && w.group.Won > w.stage.Real()-quietFor+4*time.Second
	if w.storm != nil && !late && w.judge.Exhausted() < w.stage.Real()-quietFor+rules.BudgetWindow {
		w.judge.Complain("G12", "the nodes' parts used up less than the rule leaves, all the time")
	}
	w.wholeAgain()
	w.witness.Freed()
	for _, l := range w.limits {
		if l.GetUnlimited() {
			continue
		}
		keys := []string{""}
		if l.GetKeyed() {
			keys = []string{"k0", "k1", "k2", "never seen", "hot"}
		}
		for _, key := range keys {
			w.witness.Paid(l, key)
			w.witness.Served(l, key)
		}
	}
}
