package client

import (
	"time"

	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/incident"
)

// observe takes in what a call or a probe found out that began at began. Whoever
// observes the change raises the alert, or resolves it: one of each an incident.
// The mutex orders them, so that the end of one is never told after the beginning
// of the next.
func (c *Client) observe(began time.Time, s failopen.Signal) {
	if s == failopen.Answered && c.machine.State() == failopen.Healthy {
		return
	}
	if s != failopen.Answered {
		wake(c.doubt)
	}
	c.alarm.Lock()
	defer c.alarm.Unlock()
	now := time.Now()
	change := c.machine.ObserveCall(began, now, s)
	if tell := c.alarm.Observe(now, s, change); tell != incident.Nothing {
		c.notifier.Notify(incident.Alert(c.machine.Summary(now), incident.Client{
			Name: c.config.Client, SessionID: c.sessionID, Learnt: c.learnt.Load(),
			Cause: c.alarm.Cause(), Over: tell == incident.End,
		}))
	}
	if change == failopen.Ended {
		c.reporter.Owe()
	}
}
