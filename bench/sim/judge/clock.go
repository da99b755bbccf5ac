package judge

import (
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// clock checks authority time: over every interval never faster than real time
// with the drift of one machine, and losing no more than the documented amount.
type clock struct {
	judge *Judge
	now   bucket.Instant
	// lead is the least lead of authority time over real time so far, where real
	// time counts with the greatest drift. It may only fall.
	lead  int64
	begun bool
	last  *Stamp
}

// rounding is what integer clocks may lose or gain in one step.
const rounding = int64(time.Microsecond)

func fastest(d time.Duration) int64 { return int64(d) + int64(d)*DriftPPM/1_000_000 }
func slowest(d time.Duration) int64 { return int64(d) - int64(d)*DriftPPM/1_000_000 }

func (c *clock) committed(e *Committed) {
	before := c.now
	c.now = max(c.now, e.Now)
	stamp := e.Stamp
	if e.Now < before {
		c.judge.Complain("clock", "entry %d took authority time back from %v to %v", e.Index,
			time.Duration(before), time.Duration(e.Now))
	}
	if stamp.Term == e.Term && stamp.Stamp < before {
		c.judge.Complain("clock", "entry %d was stamped %v in its own term, when %v had committed: time stands still",
			e.Index, time.Duration(stamp.Stamp), time.Duration(before))
	}
	if e.Now != stamp.Stamp {
		// An old stamp, which did nothing.
		return
	}
	lead := int64(e.Now) - fastest(stamp.Real)
	if c.begun && lead > c.lead+rounding {
		c.judge.Complain("clock", "entry %d: authority time gained %v on real time", e.Index, time.Duration(lead-c.lead))
	}
	if !c.begun || lead < c.lead {
		c.lead, c.begun = lead, true
	}
}

// Stamped takes every stamp that a leader makes, whether or not it commits: the
// leader counts on alone, and what passed since its last stamp is in this one.
func (j *Judge) Stamped(s *Stamp) {
	last := j.clock.last
	j.clock.last = s
	if last == nil || last.Term != s.Term || last.Node != s.Node || last.Process != s.Process {
		return
	}
	passed, least := int64(s.Stamp-last.Stamp), slowest(s.Real-last.Real)
	if passed < least-rounding {
		j.Complain("clock", "node %d leads in term %d and lost %v in %v", s.Node, s.Term,
			time.Duration(least-passed), s.Real-last.Real)
	}
}

// Gained takes the estimate with which a node begins to lead: what it had applied
// and what has passed since, so that an election loses the age of the last
// entry at most.
func (j *Judge) Gained(node string, estimate, applied bucket.Instant, since time.Duration) {
	if applied == 0 {
		// Authority time begins with the first leader.
		return
	}
	if least := int64(applied) + slowest(since) - rounding; int64(estimate) < least {
		j.Complain("clock", "%s begins to lead at %v: it had applied %v, %v ago", node,
			time.Duration(estimate), time.Duration(applied), since)
	}
}

// Anchored takes a follower's estimate at the moment when it has applied an entry
// or a snapshot: it counts on from there.
func (j *Judge) Anchored(node string, estimate, applied bucket.Instant) {
	if int64(estimate) < int64(applied)-rounding {
		j.Complain("clock", "%s has applied %v and takes it to be %v", node, time.Duration(applied), time.Duration(estimate))
	}
}

// Idle says how long a leader with nothing to do has stamped nothing.
func (j *Judge) Idle(node string, d time.Duration) {
	if d > 1500*time.Millisecond {
		j.Complain("clock", "%s leads and has stamped nothing for %v", node, d)
	}
}
