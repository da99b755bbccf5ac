package client

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/failopen"
)

// alertKind is the name of the incident everywhere: event, log line, metric
// rule, page.
const alertKind = "FailOpenStarted"

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
	s := c.machine.Summary(now)
	a := alert.Alert{
		Kind: alertKind, Name: c.config.Client, ID: c.sessionID + "-" + strconv.FormatUint(s.Number, 10),
		Severity: alert.Critical, Started: s.Started, Ended: s.Ended, Resolved: over,
		Labels: map[string]string{"cause": c.alarm.cause.String()},
		Values: map[string]string{
			"admitted": strconv.FormatInt(s.Admitted, 10), "refused": strconv.FormatInt(s.Refused, 10),
		},
	}
	for _, spent := range s.Spent {
		name := spent.Limit + "/" + spent.Dimension
		a.Values["tokens "+name] = strconv.FormatInt(spent.Tokens, 10)
		if spent.Bounded {
			a.Values["worst "+name] = strconv.FormatInt(spent.Worst, 10)
		}
	}
	switch {
	case a.Resolved:
		a.Text = fmt.Sprintf("The authority answers again; %d requests were admitted and %d refused without it.",
			s.Admitted, s.Refused)
	case c.learnt.Load():
		a.Text = "Nobody answers: requests are decided by the rules that the authority gave before."
	default:
		a.Labels["rules"] = "static"
		a.Text = "Nobody answers, and nobody has since this client started: requests are decided by its own static defaults."
	}
	return a
}
