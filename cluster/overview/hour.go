package overview

import "time"

const (
	// Step is how long a Point is.
	Step = 10 * time.Second
	// Points is how many an hour has.
	Points = 360
	// ahead are points that may be filled before their time comes: entries carry the
	// leader's clock, which may be ahead of this node's.
	ahead = 4
)

// Point is what happened in a Step.
type Point struct {
	// Start is when it began, Unix milliseconds.
	Start int64
	// Granted, Denied and Waited are acquires that this node answered.
	Granted, Denied, Waited int64
	// OK, Throttled and Retries are what the clients of the whole cluster reported.
	OK, Throttled, Retries int64
}

// hour is a ring of points. It belongs to whoever holds the lock around it.
type hour struct {
	points [Points + ahead]Point
}

func stepOf(t time.Time) int64 { return t.UnixMilli() / Step.Milliseconds() }

// at is the point of a moment, nil where that is not in the hour that ends at now.
func (h *hour) at(now, t time.Time) *Point {
	present, step := stepOf(now), stepOf(t)
	if step < 0 || step <= present-Points || step > present+ahead-1 {
		return nil
	}
	p := &h.points[step%int64(len(h.points))]
	if start := step * Step.Milliseconds(); p.Start != start {
		*p = Point{Start: start}
	}
	return p
}

// list is the hour that ends at now, the oldest first, from the first point that has
// anything.
func (h *hour) list(now time.Time) []Point {
	present := stepOf(now)
	list := make([]Point, 0, Points)
	for step := present - Points + 1; step <= present; step++ {
		start := step * Step.Milliseconds()
		p := Point{Start: start}
		if kept := h.points[max(step, 0)%int64(len(h.points))]; kept.Start == start {
			p = kept
		}
		if len(list) == 0 && p == (Point{Start: start}) && step < present {
			continue
		}
		list = append(list, p)
	}
	return list
}
