package client

import (
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/incident"
)

// quietMax is how long callers may be answered locally before anybody is told,
// where nothing says that the quorum is lost: an election takes less, and pages
// nobody (G8).
const quietMax = 3 * time.Second

// alarm is whether the incident that lasts was told of. Its mutex also orders
// what the machine says, so that the end of one incident is never told after the
// beginning of the next.
type alarm struct {
	mu sync.Mutex
	// open: the client is away, since then. raised: an alert was sent, for cause.
	open, raised bool
	since        time.Time
	cause        failopen.Signal
}

// observe takes in what a call or a probe found out that began at began. Whoever
// observes the change raises the alert, or resolves it: one of each an incident.
func (c *Client) observe(began time.Time, s failopen.Signal) {
	if s == failopen.Answered && c.machine.State() == failopen.Healthy {
		return
	}
	if s != failopen.Answered {
		wake(c.doubt)
	}
	c.alarm.mu.Lock()
	defer c.alarm.mu.Unlock()
	now := time.Now()
	change := c.machine.ObserveCall(began, now, s)
	if change == failopen.Started {
		c.alarm.open, c.alarm.since = true, now
	}
	if c.alarm.open && !c.alarm.raised && (isLoss(s) || now.Sub(c.alarm.since) >= quietMax) {
		c.alarm.raised, c.alarm.cause = true, s
		c.notifier.Notify(c.incident(now, false))
	}
	if change == failopen.Ended {
		if c.alarm.raised {
			c.notifier.Notify(c.incident(now, true))
		}
		c.alarm.open, c.alarm.raised = false, false
		c.patience.Store(0)
		wake(c.owing)
	}
}

// isLoss: no election explains it.
func isLoss(s failopen.Signal) bool { return s == failopen.NoQuorum || s == failopen.Unreachable }

// incident is the alert about the incident that lasts, or that ended just now.
func (c *Client) incident(now time.Time, over bool) alert.Alert {
	return incident.Alert(c.machine.Summary(now), incident.Client{
		Name: c.config.Client, SessionID: c.sessionID, Learnt: c.learnt.Load(), Cause: c.alarm.cause, Over: over,
	})
}
