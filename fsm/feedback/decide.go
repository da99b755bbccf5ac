package feedback

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/pace"
	"github.com/quorlease/quorlease/fsm/record"
)

const (
	// A ramp begins with a twentieth of the rate, and is whole after twenty steps.
	rampSteps = 20
	rampStart = pace.Whole / rampSteps
	rampStep  = (pace.Whole - rampStart) / rampSteps
	// defaultRamp is for what has to recover step by step though the limit doesn't
	// say how.
	defaultRamp = time.Minute
	// partUnit is a hundredth of a percent in parts per million.
	partUnit = pace.Whole / bucket.Whole
)

// decide works out what a signal makes of the control of a key, and whether its
// buckets are to be emptied. c is an open one where there was none.
func decide(
	limit *logv1.Limit, c record.Control, s *logv1.Signal, now bucket.Instant,
) (next record.Control, empty bool) {
	switch s.GetKind() {
	case logv1.Signal_KIND_SPEND_CAP:
		c.Blocked = true
		return c, false
	case logv1.Signal_KIND_OBSERVED, logv1.Signal_KIND_UNSPECIFIED:
		return c, false
	case logv1.Signal_KIND_THROTTLED, logv1.Signal_KIND_ACCELERATION, logv1.Signal_KIND_OVERLOADED:
	}
	until := now + bucket.Instant(s.GetWait())
	lowered, longer := c.Lowered(now), until > c.Pace.Opens && s.GetWait() > 0
	if lowered && !longer {
		// It says once more what others have said. Were the steps begun anew each
		// time, a thousand reports would hold them up.
		return c, false
	}
	p := c.Pace
	p.Start = c.Pace.At(now)
	if !lowered {
		p = lower(limit, s.GetKind(), p.Start)
		c.Decreased = now
	}
	// It was open, or is closed for longer.
	p.Opens = now
	if longer {
		p.Opens = until
	}
	c.Pace = made(p)
	return c, s.GetKind() == logv1.Signal_KIND_THROTTLED
}

// lower is how a key goes on whose pace was at: never faster.
func lower(limit *logv1.Limit, kind logv1.Signal_Kind, at int64) pace.Pace {
	if limit.GetKind() != logv1.Kind_KIND_RATE {
		// Nothing flows into slots and windows: they are closed for a time, or open.
		return pace.Pace{Start: pace.Whole}
	}
	a, ramp := limit.GetAdaptive(), time.Duration(limit.GetRamp())
	p := pace.Pace{Step: a.GetStep() * partUnit, Interval: time.Duration(a.GetInterval())}
	if a == nil {
		if ramp == 0 && (kind != logv1.Signal_KIND_THROTTLED || at < pace.Whole) {
			ramp = defaultRamp
		}
		p.Step, p.Interval = rampStep, (ramp+rampSteps-1)/rampSteps
	}
	switch {
	case kind == logv1.Signal_KIND_ACCELERATION:
		p.Start = max(rampStart, at/2)
	case a != nil:
		p.Start = max(a.GetFloor()*partUnit, at-at*a.GetDecrease()/bucket.Whole)
	case kind == logv1.Signal_KIND_OVERLOADED:
		p.Start = max(rampStart, at/2)
	case ramp == 0:
		p.Start = pace.Whole
	default:
		p.Start = rampStart
	}
	p.Start = min(p.Start, at)
	return p
}

// made is a pace of what was worked out: one that is whole takes no steps.
func made(p pace.Pace) pace.Pace {
	if p.Start >= pace.Whole {
		return pace.Pace{Opens: p.Opens, Start: pace.Whole}
	}
	return p
}
