package refuse

import (
	"time"

	"github.com/quorlease/quorlease/client/httpmw"
)

const (
	// BudgetWait is what a spent retry budget asks to wait unless configured otherwise.
	// It is told as it is: who obeys nothing else is to obey this.
	BudgetWait = time.Minute
	// SoonMax is the longest hint of what will pass soon. At 60 s some clients stop to
	// obey, and come back in a few seconds instead.
	SoonMax = 59 * time.Second

	// unknownWait is what is told where nobody knows how long it takes.
	unknownWait = time.Second
	// spreadMin is over how long those who are told the same come back, at the least; a
	// tenth of the wait where that is more.
	spreadMin = time.Second
)

// Draw is a source of chance: it returns a number from 0 to below n, and n is
// positive. rand.Int64N is one.
type Draw func(n int64) int64

// Hint is what a refusal says about coming back.
type Hint struct {
	// Said: waiting helps, for Wait, whole milliseconds, from 1 ms to 31 days.
	Said bool
	Wait time.Duration
	// Stop: who retries by himself should not.
	Stop bool
}

// waitMax bounds what is told: a month of a calendar window.
const waitMax = 31 * 24 * time.Hour

// Seconds is the wait in whole seconds, rounded up.
func (h Hint) Seconds() int64 { return httpmw.Seconds(h.Wait) }

// Hint draws the hint. It is never less than the wait, except where the wait is
// above SoonMax for what passes soon: then it is below that, and still spread.
func (r *Refusal) Hint(draw Draw) Hint {
	wait := min(max(0, r.Wait), waitMax)
	switch how := r.Reason.row().hint; {
	case how == minute:
		if wait == 0 {
			wait = BudgetWait
		}
		return said(wait, true)
	case how == honest && wait > SoonMax:
		return said(min(wait+spread(wait, draw), waitMax), true)
	case how == soon || how == honest:
		if wait == 0 {
			wait = unknownWait
		}
		if wait > SoonMax {
			// From where a tenth more is the most.
			wait = SoonMax * 10 / 11
		}
		return said(min(wait+spread(wait, draw), SoonMax), false)
	default:
		return Hint{Stop: true}
	}
}

// spread is the random part of a hint.
func spread(wait time.Duration, draw Draw) time.Duration {
	return time.Duration(draw(int64(max(wait/10, spreadMin)) + 1))
}

// said rounds up to whole milliseconds.
func said(wait time.Duration, stop bool) Hint {
	const ms = time.Millisecond
	return Hint{Said: true, Wait: (wait + ms - 1) / ms * ms, Stop: stop}
}
