// Command run runs simulations: one seed with its trace, or many seeds.
//
//	go run ./bench/sim/run -seed 17          one run; if it breaks a promise, the end of its trace
//	go run ./bench/sim/run -seeds 500        the seeds 0 to 499; stops at the first that breaks one
//	go run ./bench/sim/run -seeds 500 -trap T5   with a known mistake: says which seed catches it
//
// It exits with 1 if a run broke a promise, and with a trap if none did.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/sim"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

func main() {
	seed := flag.Int64("seed", -1, "run this one seed")
	first := flag.Uint64("first", 0, "with -seeds: the first of them")
	seeds := flag.Uint64("seeds", 500, "how many seeds to run")
	seeded := flag.String("trap", "", "seed this known mistake: "+names())
	commit := flag.String("commit", "unknown", "what is being run, to be printed")
	tail := flag.Int("tail", 60, "lines of the trace to print, at most 400")
	flag.Parse()
	if *seeded != "" && !slices.ContainsFunc(trap.All(), func(s trap.Seeded) bool { return string(s.Trap) == *seeded }) {
		fmt.Fprintf(os.Stderr, "trap %q: must be one of %s\n", *seeded, names())
		os.Exit(2)
	}
	debug.SetGCPercent(sim.GCPercent)
	r := &runner{trap: trap.Kind(*seeded), commit: *commit, tail: *tail}
	if *seed >= 0 {
		os.Exit(r.one(uint64(*seed)))
	}
	os.Exit(r.many(*first, *seeds))
}

func names() string {
	text := ""
	for _, s := range trap.All() {
		text += " " + string(s.Trap)
	}
	return text[1:]
}

// runner runs seeds of one kind.
type runner struct {
	trap   trap.Kind
	commit string
	tail   int
}

// one runs one seed and shows the end of it.
func (r *runner) one(seed uint64) int {
	fmt.Printf("seed=%d commit=%s trap=%q\n", seed, r.commit, r.trap)
	o := sim.Run(sim.Options{Seed: seed, Trap: r.trap})
	fmt.Println(o.Tail(r.tail))
	fmt.Println(o)
	fmt.Printf("print=%016x\n", o.Print)
	return code(o.Broken != nil)
}

func code(failed bool) int {
	if failed {
		return 1
	}
	return 0
}

// many runs seeds beside one another, each in one goroutine, until one breaks a
// promise.
func (r *runner) many(first, count uint64) int {
	start := time.Now()
	fmt.Printf("seeds=%d..%d commit=%s trap=%q\n", first, first+count-1, r.commit, r.trap)
	var next, broken atomic.Uint64
	next.Store(first)
	broken.Store(first + count)
	outcomes := make([]*sim.Outcome, count)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= first+count || seed > broken.Load() {
					return
				}
				o := sim.Run(sim.Options{Seed: seed, Trap: r.trap})
				if o.Broken != nil {
					lower(&broken, seed)
				} else {
					o = &sim.Outcome{Options: o.Options, Stats: o.Stats}
				}
				outcomes[seed-first] = o
			}
		})
	}
	workers.Wait()
	return r.report(outcomes, broken.Load()-first, time.Since(start))
}

// lower makes v the smaller of itself and n.
func lower(v *atomic.Uint64, n uint64) {
	for {
		old := v.Load()
		if old <= n || v.CompareAndSwap(old, n) {
			return
		}
	}
}

// report says how the seeds before the first broken one went, and that one.
func (r *runner) report(outcomes []*sim.Outcome, broken uint64, took time.Duration) int {
	var total tally.Stats
	for _, o := range outcomes[:min(broken, uint64(len(outcomes)))] {
		total.Add(&o.Stats)
	}
	fmt.Printf("%d runs held in %v: %+v\n", min(broken, uint64(len(outcomes))), took.Round(time.Millisecond), total)
	if broken == uint64(len(outcomes)) {
		return code(r.trap != trap.None)
	}
	o := outcomes[broken]
	if r.trap != trap.None {
		fmt.Println("caught:", o)
		return 0
	}
	fmt.Println(o.Tail(r.tail))
	fmt.Printf("%v\nagain: make sim SEED=%d (commit %s)\n", o, o.Seed, r.commit)
	return 1
}
