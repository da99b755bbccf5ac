package fsm

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/state"
)

// deny notes what stands against a charge. A limit that does not enforce warns, and
// the charge takes nothing.
func (p *plan) deny(l *line, reason logv1.Reason, wait int64) {
	denial := &logv1.Denial{
		Reason: reason, Limit: l.charge.GetLimit(), Key: l.charge.GetKey(),
		Dimension: l.charge.GetDimension(), RetryAfter: wait,
	}
	if l.enforced {
		p.denials = append(p.denials, denial)
		return
	}
	l.refused = true
	p.warnings = append(p.warnings, denial)
}

// countKeys denies keys beyond the caps. A limit without keys has its one key in
// any case: a flood of keys must not shut it out.
func (p *plan) countKeys(m *Machine) {
	fresh := 0
	var before *state.Limit
	ofLimit := 0
	for i := range p.targets {
		t := &p.targets[i]
		if t.key != nil || !t.lim.Limit.GetKeyed() || !t.takes {
			continue
		}
		if t.lim != before {
			before, ofLimit = t.lim, 0
		}
		fresh++
		ofLimit++
		var due bucket.Instant
		switch {
		case int64(t.lim.Keys()+ofLimit) > t.lim.Limit.GetMaxKeys():
			_, due = t.lim.FirstDue()
		case int64(m.state.Keys()+fresh) > m.state.Caps.GetKeys():
			_, due = m.state.FirstDueLimit()
		case t.lim.TooMany(p.by.maker, ofLimit):
			due = m.state.FirstDueOf(t.lim, p.by.maker)
		default:
			continue
		}
		fresh--
		ofLimit--
		p.denyKey(int32(i), roomIn(p.by.now, due))
	}
}

// denyKey notes that a key can't come into being. A limit that does not enforce
// warns, and none of the key's charges takes anything.
func (p *plan) denyKey(target int32, wait int64) {
	t := &p.targets[target]
	denial := &logv1.Denial{
		Reason: logv1.Reason_REASON_KEY_LIMIT, Limit: t.lim.Name, Key: t.name, RetryAfter: wait,
	}
	if t.lim.Limit.GetMode() == logv1.Mode_MODE_ENFORCE {
		p.denials = append(p.denials, denial)
		return
	}
	p.warnings = append(p.warnings, denial)
	t.takes = false
	for i := range p.lines {
		if p.lines[i].target == target {
			p.lines[i].refused = true
		}
	}
}

// unknownWait is the hint where nobody can say when there is room.
const unknownWait = int64(1e9)

// roomIn is how long to wait for room that there may be from due on.
func roomIn(now, due bucket.Instant) int64 {
	if due == lineage.Never {
		return unknownWait
	}
	return wholeMillis(int64(due - now))
}
