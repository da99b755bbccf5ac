package client

import (
	"context"
	"errors"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/lesson"
)

// localLife is for how long a lease is good that the client granted by itself.
const localLife = 5 * time.Second

// Acquire asks for a decision and has an answer within ctx's deadline, or within
// Config.Deadline where it has none: the authority's, or, where nobody answers in
// time, the client's own, which says Local (G8). An error is a bad request
// (BadRequestError), an unknown limit, a missing right, another request under
// the same lease id, ctx's where its caller left, or ErrClosed.
func (c *Client) Acquire(ctx context.Context, r Request) (*Decision, error) {
	if r.Client == "" {
		r.Client = c.config.Client
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	drawn := r.LeaseID == "" && r.Track
	if drawn {
		r.LeaseID = newID()
	}
	switch {
	case c.authority.Stopped():
		return nil, ErrClosed
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	}
	asked := time.Now()
	c.notePatience(ctx, asked)
	if v := c.machine.Retry(asked, r.Client, r.Attempt); !v.Admit {
		return c.count(refusedLocally(&r, v)), nil
	}
	if c.machine.Away() {
		return c.count(c.decide(&r)), nil
	}
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	answer, err := c.authority.Ask(bounded, c.question(&r))
	if err == nil {
		response := answer.GetAcquire()
		c.learn(&r, response)
		return c.count(decisionOf(response, r.Charges, asked)), nil
	}
	unanswered := errors.Is(err, ErrUnanswered)
	// Whoever left may ask again under an id of its own (G4).
	if r.Track && unanswered || drawn && ctx.Err() != nil {
		c.authority.Abandon(r.LeaseID)
	}
	if unanswered {
		return c.count(c.decide(&r)), nil
	}
	return nil, err
}

// notePatience remembers how long a caller waits.
func (c *Client) notePatience(ctx context.Context, now time.Time) {
	budget := c.config.Deadline
	if deadline, ok := ctx.Deadline(); ok {
		budget = deadline.Sub(now)
	}
	c.authority.Note(now, budget)
}

// question is the request as it is asked.
func (c *Client) question(r *Request) *authority.Question {
	request := &quorleasev1.AcquireRequest{
		LeaseId: r.LeaseID, Client: r.Client, Class: r.Class, Attempt: r.Attempt, Track: r.Track,
		Charges: encodeCharges(r.Charges),
	}
	if revision, ok := c.machine.Known(r.Client, localCharges(r.Charges)); ok {
		request.KnownRevision = &revision
	}
	message := &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{Acquire: request}}
	return &authority.Question{Message: message, Safe: r.Track || !c.config.OnceOnly}
}

func localCharges(charges []Charge) []failopen.Charge {
	out := make([]failopen.Charge, len(charges))
	for i, c := range charges {
		out[i] = failopen.Charge(c)
	}
	return out
}

// decide decides without the authority, and sees to it that what it admits is
// reported.
func (c *Client) decide(r *Request) *Decision {
	now := time.Now()
	v := c.machine.Decide(now, failopen.Request{
		Client: r.Client, Class: r.Class, Attempt: r.Attempt, Charges: localCharges(r.Charges),
	})
	if !v.Admit {
		return refusedLocally(r, v)
	}
	c.reporter.Owe()
	lease := Lease{ID: r.LeaseID, Charges: r.Charges, Ends: now.Add(localLife), Tracked: r.Track, Local: true}
	return &Decision{Granted: true, Source: Local, Lease: lease}
}

// refusedLocally is the answer to a request that this client refuses by itself.
func refusedLocally(r *Request, v failopen.Verdict) *Decision {
	denial := Denial{Reason: localReason(v.Reason), RetryAfter: v.RetryAfter, Never: v.Never, FreesIn: v.FreesIn}
	if v.Charge >= 0 && v.Charge < len(r.Charges) {
		charge := &r.Charges[v.Charge]
		denial.Limit, denial.Key, denial.Dimension = charge.Limit, charge.Key, charge.Dimension
	}
	return &Decision{Source: Local, Denials: []Denial{denial}}
}

// learn keeps what an answer says, and counts what it granted for the retry
// budget.
func (c *Client) learn(r *Request, answer *quorleasev1.AcquireResponse) {
	if answer.GetDecision() == quorleasev1.Decision_GRANTED && !answer.GetRepeatedRequest() {
		c.machine.Count(time.Now(), r.Client, 1, min(1, int64(r.Attempt)))
	}
	c.keep(r.Client, answer.GetFallbacks())
}

// keep keeps what an answer says about deciding without the authority.
func (c *Client) keep(client string, news *quorleasev1.Fallbacks) {
	if news == nil {
		return
	}
	// What can't be used is left out, and what was known of it stays: a newer node
	// may say things that this client does not understand.
	if c.machine.Learn(time.Now(), lesson.Of(client, news)) == nil {
		c.authority.Learnt()
	}
}
