package client

import (
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/members"
)

// Status is how a client stands.
type Status struct {
	// State is Healthy, Doubtful, Away or Recovering; FailOpen is true in the last
	// two, in which the client decides by itself.
	State    failopen.State
	FailOpen bool
	// Incident is the one that lasts, or else the last one; its Number is 0 where
	// there was none.
	Incident failopen.Summary
	// Admitted is what was admitted locally since the client was made.
	Admitted []failopen.Total
	// Endpoints are the nodes that the client knows.
	Endpoints []members.Endpoint
	// SessionID is under which the client reports. It changes when an hour has
	// passed since everything was booked.
	SessionID string
}

// Status is a snapshot.
func (c *Client) Status() Status {
	state := c.machine.State()
	return Status{
		State: state, FailOpen: state == failopen.Away || state == failopen.Recovering,
		Incident: c.machine.Summary(time.Now()), Admitted: c.machine.Totals(),
		Endpoints: c.authority.Members().All(), SessionID: c.reporter.ID(),
	}
}

// FailOpen says whether the client decides by itself now.
func (c *Client) FailOpen() bool { return c.machine.Away() }

// EachAdmitted calls yield with the tokens, over all keys and dimensions, that the
// client has admitted by itself so far, for each limit once: for metrics.
func (c *Client) EachAdmitted(yield func(limit string, tokens int64)) {
	totals := c.machine.Totals()
	for len(totals) > 0 {
		limit, tokens := totals[0].Limit, int64(0)
		for len(totals) > 0 && totals[0].Limit == limit {
			tokens += totals[0].Tokens
			totals = totals[1:]
		}
		yield(limit, tokens)
	}
}

// EachShare calls yield with the part of a limit, 0 to 1, that the client may use while nobody
// answers, for each limit once of which the authority has promised a part: for metrics.
func (c *Client) EachShare(yield func(limit string, part float64)) {
	for _, p := range c.machine.Held() {
		yield(p.Limit, float64(p.SharePPM)/1e6)
	}
}

// EachDecision calls yield with how many decisions there were so far, for each
// source and decision ("granted", "denied"): for metrics. Permits
// that a Limiter gives from a lease are not among them: they cost nothing, and
// counting them would.
func (c *Client) EachDecision(yield func(source, decision string, count int64)) {
	for source := Node; source <= Local; source++ {
		yield(source.String(), "granted", c.decided[source].granted.Load())
		yield(source.String(), "denied", c.decided[source].denied.Load())
	}
}

// decided counts decisions of one source.
type decided struct{ granted, denied atomic.Int64 }

// count counts a decision.
func (c *Client) count(d *Decision) *Decision {
	if d.Granted {
		c.decided[d.Source].granted.Add(1)
	} else {
		c.decided[d.Source].denied.Add(1)
	}
	return d
}
