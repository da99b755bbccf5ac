// Package stage is the ground that a simulation stands on: virtual time, machines
// whose clocks drift and stop, and a network that loses, delays, reorders and
// repeats what it carries.
//
// Everything happens in one goroutine, in an order that follows from the seed
// alone: there is no clock, no other source of chance and no map that is walked.
package stage

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Stage is virtual time with what is to happen in it.
type Stage struct {
	// Rand is the one source of chance.
	Rand *rand.Rand
	// OnStep, where set, is called after everything that happened.
	OnStep func()
	// OnRest are called at the end of every Run.
	OnRest []func()

	now   time.Duration
	queue queue
	trace trace
}

// New is a stage at time 0.
func New(seed uint64) *Stage {
	return &Stage{Rand: rand.New(rand.NewPCG(seed, 0x51_75_6f_72_6c_65_61_73))}
}

// Real is the real time since the beginning. Nobody on the stage can see it;
// checkers can.
func (s *Stage) Real() time.Duration { return s.now }

// At does f on host when d of real time has passed: later if the host is
// suspended then, never if its process has ended by then. A nil host is the
// world itself.
func (s *Stage) At(host *Host, d time.Duration, f func()) {
	s.plan(d, event{host: host, do: f})
}

func (s *Stage) plan(d time.Duration, e event) {
	if e.host != nil {
		e.process = e.host.process
	}
	s.queue.push(s.now+max(0, d), e)
}

// Run lets time pass until end, or until stop says so.
func (s *Stage) Run(end time.Duration, stop func() bool) {
	defer func() {
		for _, f := range s.OnRest {
			f()
		}
	}()
	for len(s.queue.heap) > 0 && s.queue.heap[0].at <= end {
		at, e := s.queue.pop()
		s.now = at
		s.perform(e)
		if stop() {
			return
		}
	}
	s.now = max(s.now, end)
}

func (s *Stage) perform(e event) {
	if h := e.host; h != nil {
		if e.process != h.process || h.dead {
			return
		}
		if h.suspended {
			h.backlog = append(h.backlog, e)
			return
		}
	}
	// What is under way when the cable is cut is lost too.
	if e.network == nil || !e.network.separated(e.from, e.host) {
		e.do()
	}
	if s.OnStep != nil {
		s.OnStep()
	}
}

// Chance is true once in n times.
func (s *Stage) Chance(n int) bool { return s.Rand.IntN(n) == 0 }

// Between is a duration from low to high.
func (s *Stage) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.Rand.Int64N(int64(high-low)+1))
}

// Amount is a number from low to high.
func (s *Stage) Amount(low, high int64) int64 { return low + s.Rand.Int64N(high-low+1) }

// traceKept is how many lines of the trace are kept.
const traceKept = 400

// trace keeps the last lines, unformatted: nearly all runs end well.
type trace struct {
	lines [traceKept]line
	count int
}

type line struct {
	at     time.Duration
	format string
	values []any
}

// Trace notes what happened. The values are formatted later, or never: they
// must not change.
func (s *Stage) Trace(format string, values ...any) {
	s.trace.lines[s.trace.count%traceKept] = line{s.now, format, values}
	s.trace.count++
}

// Tail is the last n lines of the trace, the newest last.
func (s *Stage) Tail(n int) []string {
	n = min(n, s.trace.count, traceKept)
	lines := make([]string, 0, n)
	for i := s.trace.count - n; i < s.trace.count; i++ {
		l := &s.trace.lines[i%traceKept]
		lines = append(lines, fmt.Sprintf("%12.6f  ", l.at.Seconds())+fmt.Sprintf(l.format, l.values...))
	}
	return lines
}
