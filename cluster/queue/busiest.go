package queue

import (
	"maps"
	"slices"
	"time"
)

// Busiest shows, of each limit where anybody waits, the place where most do, at most
// limits of them in the order of their names. Of places where equally many wait it is
// the first by name.
func (q *Queue) Busiest(now time.Duration, limits int) []ClassState {
	type spot struct {
		at      Place
		waiting int
	}
	spots := make(map[string]spot)
	for at, p := range q.places {
		waiting := 0
		for _, l := range p.lanes {
			waiting += l.waiting
		}
		most, there := spots[at.Limit]
		if waiting > 0 && (!there || waiting > most.waiting || waiting == most.waiting && at.Key < most.at.Key) {
			spots[at.Limit] = spot{at, waiting}
		}
	}
	var states []ClassState
	for i, limit := range slices.Sorted(maps.Keys(spots)) {
		if i == limits {
			break
		}
		for _, s := range q.State(now, spots[limit].at) {
			s.Place = spots[limit].at
			states = append(states, s)
		}
	}
	return states
}
