package client

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/failopen"
)

// alertKind is the name of the incident everywhere: event, log line, metric
// rule, page.
const alertKind = "FailOpenStarted"

// observe takes in what a call or a probe found out. Whoever observes the
// change raises the alert, or resolves it: one of each an incident.
func (c *Client) observe(s failopen.Signal) {
	now := time.Now()
	change := c.machine.Observe(now, s)
	if s != failopen.Answered {
		wake(c.doubt)
	}
	switch change {
	case failopen.Started:
		c.notifier.Notify(c.incident(now))
	case failopen.Ended:
		c.patience.Store(0)
		c.notifier.Notify(c.incident(now))
		wake(c.owing)
	case failopen.None:
	}
}

// incident is the alert about the incident that began or ended now.
func (c *Client) incident(now time.Time) alert.Alert {
	s := c.machine.Summary(now)
	a := alert.Alert{
		Kind: alertKind, Name: c.config.Client, ID: c.sessionID + "-" + strconv.FormatUint(s.Number, 10),
		Severity: alert.Critical, Started: s.Started, Ended: s.Ended, Resolved: !s.Ended.IsZero(),
		Labels: map[string]string{"cause": s.Cause.String()},
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
