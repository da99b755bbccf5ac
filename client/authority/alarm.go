package authority

import (
	"time"

	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/incident"
)

// observe takes in what a call or a probe found out that began at began. Whoever
// observes the change raises the alert, or resolves it: one of each an incident.
// The mutex orders them, so that the end of one is never told after the beginning
// of the next.
func (a *Authority) observe(began time.Time, s failopen.Signal) {
	if s == failopen.Answered && a.machine.State() == failopen.Healthy {
		return
	}
	if s != failopen.Answered {
		wake(a.doubt)
	}
	a.alarm.Lock()
	defer a.alarm.Unlock()
	now := time.Now()
	change := a.machine.ObserveCall(began, now, s)
	if tell := a.alarm.Observe(now, s, change); tell != incident.Nothing {
		a.config.Notify(incident.Alert(a.machine.Summary(now), incident.Client{
			Name: a.config.Members.Client, SessionID: a.config.Members.SessionID, Learnt: a.learnt.Load(),
			Cause: a.alarm.Cause(), Over: tell == incident.End,
		}))
	}
	if change == failopen.Ended {
		a.config.Over()
	}
}
