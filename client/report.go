package client

import (
	"context"
	"math/rand/v2"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/failopen"
)

const (
	// reportMax is how many accounts one report has: the protocol's bound.
	reportMax = 64
	// reportTimeout bounds one report.
	reportTimeout = 2 * time.Second
	// reportPause is how long what is admitted gathers before it is reported, and
	// the first pause after a report that failed.
	reportPause    = 200 * time.Millisecond
	reportPauseMax = 10 * time.Second
	// reportSession is after how long without anything new the counts start over
	// under another id: well before the authority forgets them, a day after they
	// last grew, and would book them a second time. Not sooner, because what each id
	// has reported is remembered for as long.
	reportSession = time.Hour
)

// report tells the authority what was admitted without it, once it answers. The
// counts are cumulative: a report that is lost or repeated does no harm (T35).
func (c *Client) report(ctx context.Context) {
	quiet := time.NewTimer(reportSession)
	defer quiet.Stop()
	for {
		select {
		case <-c.owing:
		case <-quiet.C:
			if c.machine.StartOver() {
				id := newID()
				c.reportID.Store(&id)
			}
			quiet.Reset(reportSession)
			continue
		case <-ctx.Done():
			return
		}
		wait := reportPause
		// While the client is away the end of the incident wakes this loop again.
		for !c.machine.Away() && len(c.machine.Pending(1)) > 0 {
			if !pause(ctx, wait/2+rand.N(wait)) {
				return
			}
			if c.reportOnce(ctx) {
				wait = reportPause
			} else {
				wait = min(2*wait, reportPauseMax)
			}
		}
		quiet.Reset(reportSession)
	}
}

// reportOnce reports what waits. It is false where something was not taken.
func (c *Client) reportOnce(ctx context.Context) bool {
	for {
		accounts := c.machine.Pending(reportMax)
		if len(accounts) == 0 {
			return true
		}
		if c.sendReport(ctx, accounts) != nil {
			return false
		}
		c.machine.Booked(accounts)
	}
}

func (c *Client) sendReport(ctx context.Context, accounts []failopen.Account) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	s, node, err := c.members.Session(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	request := &quorleasev1.ReportRequest{Client: c.config.Client, SessionId: *c.reportID.Load()}
	for _, a := range accounts {
		request.Admitted = append(request.Admitted, &quorleasev1.Admitted{
			Limit: a.Limit, Key: a.Key, Dimension: a.Dimension, Class: a.Class, Tokens: a.Tokens,
		})
	}
	_, err = quorleasev1.NewAdmissionClient(s.Conn()).Report(ctx, request)
	if err != nil && isFair(ctx, began) {
		c.members.Failed(node, err)
	}
	return err
}
