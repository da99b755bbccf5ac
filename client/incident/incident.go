// Package incident words the alert about a client that decides by itself.
package incident

import (
	"fmt"
	"strconv"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/failopen"
)

// Kind is the name of the incident everywhere: event, log line, metric rule, page.
const Kind = "FailOpenStarted"

// Client is whose incident it is.
type Client struct {
	Name, SessionID string
	// Learnt: the authority has said before what to do without it. Otherwise the
	// client decides by its own static rules.
	Learnt bool
	// Cause is what said that nobody is there. Over: somebody answers again.
	Cause failopen.Signal
	Over  bool
}

// Alert is the alert about an incident that lasts or is over. At the end it
// says what was admitted.
func Alert(s failopen.Summary, c Client) alert.Alert {
	a := alert.Alert{
		Kind: Kind, Name: c.Name, ID: c.SessionID + "-" + strconv.FormatUint(s.Number, 10),
		Severity: alert.Critical, Started: s.Started, Ended: s.Ended, Resolved: c.Over,
		Labels: map[string]string{"cause": c.Cause.String()},
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
	case c.Learnt:
		a.Text = "Nobody answers: requests are decided by the rules that the authority gave before."
	default:
		a.Labels["rules"] = "static"
		a.Text = "Nobody answers, and no limit was learnt before: requests are decided by this client's own static defaults."
	}
	return a
}
