package stat

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Arrivals says how the starts of an open loop lie in time.
type Arrivals string

// The arrivals.
const (
	// Poisson: independent of one another, as people are.
	Poisson Arrivals = "poisson"
	// Even: one after the other at equal distances, as timers are.
	Even Arrivals = "even"
)

// Schedule is when one caller of an open loop means to start each call, counted
// from the beginning. What it means to do does not depend on what happens: a call
// that starts late because the one before took long has waited since its time
// in the schedule, and that wait is part of its latency. It is for one
// goroutine.
type Schedule struct {
	// gap is the mean distance of two starts of this caller.
	gap    float64
	next   float64
	random *rand.Rand
}

// NewSchedule is the part of caller index, of callers, of perSecond starts a
// second over all of them.
func NewSchedule(a Arrivals, perSecond float64, callers, index int, source rand.Source) (*Schedule, error) {
	if perSecond <= 0 || callers < 1 || index < 0 || index >= callers {
		return nil, fmt.Errorf("schedule: %g starts a second for caller %d of %d", perSecond, index, callers)
	}
	all := float64(time.Second) / perSecond
	s := &Schedule{gap: all * float64(callers)}
	switch a {
	case Even:
		s.next = all * float64(index)
	case Poisson:
		// Many independent processes are together one of the sum of their rates.
		s.random = rand.New(source)
		s.next = s.random.ExpFloat64() * s.gap
	default:
		return nil, fmt.Errorf("arrivals: %q is none of %s, %s", a, Poisson, Even)
	}
	return s, nil
}

// Next is the next start.
func (s *Schedule) Next() time.Duration {
	at := time.Duration(s.next)
	if s.random == nil {
		s.next += s.gap
	} else {
		s.next += s.random.ExpFloat64() * s.gap
	}
	return at
}
