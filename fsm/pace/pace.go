package pace

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

const (
	// Whole is full speed: real time, in parts per million.
	Whole = 1_000_000
	// MaxInterval bounds the time between two steps.
	MaxInterval = 24 * time.Hour
	// MaxInstant bounds the time until which a key is closed, 195 years: with it no
	// sum of this package overflows.
	MaxInstant = bucket.Instant(1<<62 + 1<<61)
	// Never is an instant that does not come.
	Never = bucket.Instant(math.MaxInt64)
)

// Pace says how fast the time of a key goes by. The zero Pace is none; make one
// with New.
type Pace struct {
	// Opens is until when the key's time stands still.
	Opens bucket.Instant
	// Start is the speed from then on in parts per million, 1 to Whole.
	Start int64
	// Step is added after each Interval, until the speed is Whole.
	Step     int64
	Interval time.Duration
}

// New is p, or an error that names the field which can't be used. Step and
// Interval are zero where Start is Whole, and positive otherwise.
func New(p Pace) (Pace, error) {
	switch {
	case p.Opens < 0 || p.Opens > MaxInstant:
		return Pace{}, fmt.Errorf("opens %d: must be from 0 to %d", p.Opens, MaxInstant)
	case p.Start < 1 || p.Start > Whole:
		return Pace{}, fmt.Errorf("start %d: must be from 1 to %d parts per million", p.Start, Whole)
	case p.Start == Whole && (p.Step != 0 || p.Interval != 0):
		return Pace{}, fmt.Errorf("step %d, interval %v: must be 0 where start is whole", p.Step, p.Interval)
	case p.Start == Whole:
		return p, nil
	case p.Step < 1 || p.Step > Whole:
		return Pace{}, fmt.Errorf("step %d: must be from 1 to %d parts per million", p.Step, Whole)
	case p.Interval < 1 || p.Interval > MaxInterval:
		return Pace{}, fmt.Errorf("interval %v: must be from 1ns to %v", p.Interval, MaxInterval)
	}
	return p, nil
}

// steps is after how many steps the speed is whole.
func (p *Pace) steps() int64 {
	if p.Start >= Whole {
		return 0
	}
	return (Whole - p.Start + p.Step - 1) / p.Step
}

// WholeAt is the first instant from which the key's time is real time; Never
// where that is beyond the end of authority time.
func (p *Pace) WholeAt() bucket.Instant {
	hi, lo := bits.Mul64(uint64(p.steps()), uint64(p.Interval))
	if hi > 0 || lo > uint64(math.MaxInt64-int64(p.Opens)) {
		return Never
	}
	return p.Opens + bucket.Instant(lo)
}

// At is the speed at now, in parts per million. Before the key opens it is the
// one that it will open with.
func (p *Pace) At(now bucket.Instant) int64 {
	if now <= p.Opens || p.Start >= Whole {
		return p.Start
	}
	return p.speed(min(int64(now-p.Opens)/int64(p.Interval), p.steps()))
}

// speed is that after so many steps.
func (p *Pace) speed(steps int64) int64 { return min(Whole, p.Start+steps*p.Step) }

// Effective is how many nanoseconds of the key's own time pass from one instant to
// a later one; 0 where to is not later. It is never more than passes really.
func (p *Pace) Effective(from, to bucket.Instant) int64 {
	if to <= from {
		return 0
	}
	return p.since(to) - p.since(from)
}

// since is the key's time at now; it begins when the key opens, at 0.
//
// It is the whole nanoseconds of the area under the speed. Rounding it once, and taking
// differences of what was rounded, is what makes them add up.
func (p *Pace) since(now bucket.Instant) int64 {
	if now <= p.Opens {
		return 0
	}
	elapsed := int64(now - p.Opens)
	if p.Start >= Whole {
		return elapsed
	}
	interval := int64(p.Interval)
	steps := min(elapsed/interval, p.steps())
	// The rest is all that comes after the last step where the speed is whole.
	rest := elapsed - steps*interval
	// With at most a million steps the sum of their speeds fits.
	speeds := steps*p.Start + steps*(steps-1)/2*p.Step
	if steps == p.steps() {
		return area(speeds, interval, 0, 0) + rest
	}
	return area(speeds, interval, p.speed(steps), rest)
}

// area is (speeds × interval + speed × rest) ÷ Whole, rounded down. It is at most
// the time that passed, so that it fits.
func area(speeds, interval, speed, rest int64) int64 {
	hi, lo := bits.Mul64(uint64(speeds), uint64(interval))
	over, last := bits.Mul64(uint64(speed), uint64(rest))
	lo, carry := bits.Add64(lo, last, 0)
	q, _ := bits.Div64(hi+over+carry, lo, Whole)
	return int64(q)
}

// Invert is the first instant, from on, by which so many nanoseconds of the key's
// own time have passed since from. ok is false where that is beyond the end of
// authority time. effective must not be negative.
func (p *Pace) Invert(from bucket.Instant, effective int64) (at bucket.Instant, ok bool) {
	if effective == 0 {
		return from, true
	}
	before := p.since(from)
	if effective > math.MaxInt64-before {
		return 0, false
	}
	wanted := before + effective
	first, last := max(from, p.Opens), p.WholeAt()
	if last != Never {
		if beyond := wanted - p.since(last); beyond > 0 {
			if beyond > math.MaxInt64-int64(last) {
				return 0, false
			}
			return last + bucket.Instant(beyond), true
		}
	}
	// The key's time never goes back, so that the first instant can be searched for:
	// it has passed by last, and not before first.
	if last == Never && p.since(last) < wanted {
		return 0, false
	}
	for first < last {
		middle := first + (last-first)/2
		if p.since(middle) >= wanted {
			last = middle
		} else {
			first = middle + 1
		}
	}
	return first, true
}
