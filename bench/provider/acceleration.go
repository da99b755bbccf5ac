package provider

import "time"

// Growth is how fast an account may grow: from Above on, the input tokens of a
// minute may be no more than half as much again as those of the best minute
// between 15 and 30 minutes before. As it was seen, Above is a million.
type Growth struct {
	// Above is the input tokens a minute that are free of it. 0: growth is not
	// looked at. At most 10^12.
	Above int64
}

const (
	// grownIn is the time in which an account may grow by half.
	grownIn = 15
	// remembered minutes: those that count, and this one.
	remembered = 2*grownIn + 1
)

// Acceleration refuses what grows too fast, although there is room for it.
type Acceleration struct {
	growth Growth
	// minutes has the admitted input tokens of the last minutes, by number modulo
	// remembered; minute is the number of the newest.
	minutes [remembered]int64
	minute  int64
}

// NewAcceleration is an account that has used nothing so far.
func NewAcceleration(growth Growth) *Acceleration { return &Acceleration{growth: growth} }

// Wait is how long a call with so many input tokens has to wait: until the next
// minute of the clock, where this one has what it may have.
func (a *Acceleration) Wait(now time.Duration, input int64) time.Duration {
	if a.growth.Above <= 0 {
		return 0
	}
	a.turn(now)
	if a.minutes[a.minute%remembered]+input <= a.Ceiling(now) {
		return 0
	}
	return time.Duration(a.minute+1)*time.Minute - now
}

// Count counts what was let in.
func (a *Acceleration) Count(now time.Duration, input int64) {
	if a.growth.Above > 0 {
		a.turn(now)
		a.minutes[a.minute%remembered] += input
	}
}

// Ceiling is how many input tokens this minute may have.
func (a *Acceleration) Ceiling(now time.Duration) int64 {
	a.turn(now)
	var best int64
	for back := int64(grownIn); back < remembered; back++ {
		if n := a.minute - back; n >= 0 {
			best = max(best, a.minutes[n%remembered])
		}
	}
	return max(a.growth.Above, best+best/2)
}

// turn empties the minutes in which nothing was admitted.
func (a *Acceleration) turn(now time.Duration) {
	minute := int64(now / time.Minute)
	for n := max(a.minute+1, minute-remembered+1); n <= minute; n++ {
		a.minutes[n%remembered] = 0
	}
	a.minute = max(a.minute, minute)
}
