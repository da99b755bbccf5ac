package judge

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// pauses checks what providers' answers do: from the entry that says so until the
// pause is over in authority time, or a person clears the key, nothing of it is
// granted; and nobody is refused for a pause that there is not.
type pauses struct {
	judge *Judge
	keys  map[place]*closing
}

// closing is until when a key is closed, in authority time.
type closing struct {
	opens   int64
	blocked bool
}

func (p *pauses) key(limit, key string) *closing {
	at := place{limit: limit, key: key}
	c := p.keys[at]
	if c == nil {
		c = &closing{}
		p.keys[at] = c
	}
	return c
}

func (p *pauses) take(now int64, op *logv1.Operation, result *logv1.Result) {
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Feedback:
		for i, s := range kind.Feedback.GetSignals() {
			if answers := result.GetFeedback().GetSignals(); i < len(answers) && !answers[i].GetGone() {
				p.key(s.GetLimit(), s.GetKey()).signal(now, s)
			}
		}
	case *logv1.Operation_Adjust:
		if kind.Adjust.GetClear() && result.GetAdjust() != nil {
			*p.key(kind.Adjust.GetLimit(), kind.Adjust.GetKey()) = closing{}
		}
	case *logv1.Operation_Acquire:
		p.acquire(now, kind.Acquire, result.GetAcquire())
	}
}

func (c *closing) signal(now int64, s *logv1.Signal) {
	switch s.GetKind() {
	case logv1.Signal_KIND_SPEND_CAP:
		c.blocked = true
	case logv1.Signal_KIND_THROTTLED, logv1.Signal_KIND_ACCELERATION, logv1.Signal_KIND_OVERLOADED:
		if s.GetWait() > 0 {
			c.opens = max(c.opens, now+s.GetWait())
		}
	case logv1.Signal_KIND_OBSERVED, logv1.Signal_KIND_UNSPECIFIED:
	}
}

func (p *pauses) acquire(now int64, op *logv1.Acquire, answer *logv1.AcquireResult) {
	if answer.GetGranted() && !answer.GetRepeated() {
		for _, c := range op.GetCharges() {
			if k := p.key(c.GetLimit(), c.GetKey()); k.blocked || now < k.opens {
				p.judge.Complain("pause", "%s is granted at %v of %s/%s: blocked %v, paused until %v", name(op.GetLeaseId()),
					time.Duration(now), c.GetLimit(), c.GetKey(), k.blocked, time.Duration(k.opens))
			}
		}
	}
	for _, d := range answer.GetDenials() {
		k := p.key(d.GetLimit(), d.GetKey())
		if d.GetReason() == logv1.Reason_REASON_BLOCKED && !k.blocked ||
			d.GetReason() == logv1.Reason_REASON_PAUSED && now >= k.opens {
			p.judge.Complain("pause", "%s is denied at %v by %v: blocked %v, paused until %v", name(op.GetLeaseId()),
				time.Duration(now), d, k.blocked, time.Duration(k.opens))
		}
	}
}
