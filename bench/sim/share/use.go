package share

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/client/failopen"
)

// act is one request, and those after it: while nobody answers the machine decides.
func (l *life) act() {
	s := l.crowd.Stage
	if !l.there() {
		return
	}
	s.At(l.host, s.Between(50*time.Millisecond, 500*time.Millisecond), l.act)
	// In the end nobody begins anything, and what was admitted gets its time to be told.
	if l.machine.Away() && l.crowd.Busy() {
		l.decide()
		if !s.Chance(3) {
			return
		}
	}
	l.report()
	if l.crowd.Busy() || l.machine.Away() {
		l.ask()
	}
}

func (l *life) ask() {
	op := rules.Acquire(&logv1.Acquire{
		LeaseId: append([]byte("u-"), l.session[6:]...)[:16], Client: l.name,
		Charges: rules.Charges(rules.Crowd, "", "requests", l.crowd.Stage.Amount(1, 6)),
	})
	l.call(op, askFor, func(_ *logv1.Result, signal failopen.Signal) {
		if l.there() {
			l.machine.Observe(l.now(), signal)
		}
	})
}

// decide admits what the machine does.
func (l *life) decide() {
	n := l.crowd.Stage.Amount(1, 3)
	verdict := l.machine.Decide(l.now(), failopen.Request{
		Client: l.name, Charges: []failopen.Charge{{Limit: rules.Crowd, Dimension: "requests", Amount: n}},
	})
	if verdict.Admit {
		l.crowd.Stats.Shared += int(n)
		l.crowd.Judge.Admitted(l.name, rules.Charges(rules.Crowd, "", "requests", n)[0], n)
	}
}

// report tells the authority what was admitted, until it is heard.
func (l *life) report() {
	pending := l.machine.Pending(1)
	if l.reporting || len(pending) == 0 {
		return
	}
	l.reporting = true
	op := &logv1.ReportAdmitted{Session: l.session, Client: l.name, Counts: []*logv1.AdmittedCount{{
		Limit: rules.Crowd, Dimension: "requests", Tokens: pending[0].Tokens,
	}}}
	l.call(&logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{ReportAdmitted: op}}, time.Second,
		func(r *logv1.Result, _ failopen.Signal) {
			l.reporting = false
			if r.GetAdmitted() != nil {
				l.machine.Booked(pending)
			}
		})
}
