package client

import (
	"context"
	"errors"
	"maps"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/charged"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/lesson"
)

// localLife is for how long a lease is good that the client granted by itself.
const localLife = 5 * time.Second

// Acquire asks for a decision and has an answer within ctx's deadline, or within
// MaxWait and Config.Deadline where it has none: the authority's, or, where nobody answers in
// time, the client's own, which says Local (G8): within MaxWait it waits for its share to earn
// what it was refused, unless the authority is back before. An error is a bad request
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
	until := asked.Add(c.waits(ctx, asked, r.MaxWait))
	if v := c.machine.Retry(asked, r.Client, r.Attempt); !v.Admit {
		return c.count(refusedLocally(v, nil)), nil
	}
	for {
		away := c.machine.Away()
		if !away {
			d, err := c.ask(ctx, &r, until, drawn)
			switch {
			case err == nil:
				return c.count(d), nil
			case !errors.Is(err, ErrUnanswered):
				return nil, err
			}
		}
		d := c.decide(&r)
		if !away && (r.Track && !drawn || !r.Track && c.config.OnceOnly) {
			// What was abandoned is not asked for again, nor what must be asked once.
			return c.count(d), nil
		}
		again, err := c.rest(ctx, d, until)
		switch {
		case err != nil:
			return nil, err
		case !again:
			return c.count(d), nil
		case drawn && !away:
			r.LeaseID = newID()
		}
	}
}

// ask asks the authority. What it may have granted to somebody who hears nothing of it is given
// back.
func (c *Client) ask(ctx context.Context, r *Request, until time.Time, drawn bool) (*Decision, error) {
	asked := time.Now()
	waits := max(0, until.Sub(asked))
	bounded, cancel := c.bounded(ctx, waits)
	defer cancel()
	q := c.question(r)
	if waits > 0 {
		q.WaitsUntil = until
	}
	answer, err := c.authority.Ask(bounded, q)
	if err == nil {
		response := answer.GetAcquire()
		c.learn(r, response, q.Cold)
		return decisionOf(response, r, asked), nil
	}
	// Whoever left may ask again under an id of its own (G4).
	if r.Track && errors.Is(err, ErrUnanswered) || drawn && ctx.Err() != nil {
		c.authority.Abandon(r.LeaseID)
	}
	return nil, err
}

const (
	// restStep is how long who waits for the client's own share does so without a look at
	// the authority, and restMin how long at least.
	restStep = 250 * time.Millisecond
	restMin  = 5 * time.Millisecond
)

// rest waits until what a request was refused for has come back to the client's share, or the
// authority is there again. It is false where that takes until after until, or no waiting helps:
// then the refusal is the answer, or the error.
func (c *Client) rest(ctx context.Context, d *Decision, until time.Time) (again bool, err error) {
	if d.Granted || d.Denials[0].Reason != localReason(failopen.Rate) {
		return false, nil
	}
	wait, never := d.RetryAfter()
	wait = max(wait, restMin)
	if never || time.Until(until) < wait {
		return false, nil
	}
	for over := time.Now().Add(wait); wait > 0; wait = time.Until(over) {
		switch {
		case authority.Pause(ctx, min(wait, restStep)):
		case errors.Is(ctx.Err(), context.Canceled):
			return false, ctx.Err()
		default:
			return false, nil
		}
		if c.authority.Stopped() {
			return false, ErrClosed
		}
		if !c.machine.Away() {
			break
		}
	}
	return true, nil
}

// waits is how long an acquire may wait in a queue, of at most most, and have an
// answer in time. It remembers how long its caller waits beside that: who waits in
// a queue is not kept waiting by an authority that is slow.
func (c *Client) waits(ctx context.Context, now time.Time, most time.Duration) time.Duration {
	left := most + c.config.Deadline
	if deadline, ok := ctx.Deadline(); ok {
		left = deadline.Sub(now)
	}
	waits := max(0, min(most, left-min(c.config.Deadline, left/2)))
	c.authority.Note(now, left-waits)
	return waits
}

// question is the request as it is asked.
func (c *Client) question(r *Request) *authority.Question {
	request := &quorleasev1.AcquireRequest{
		LeaseId: r.LeaseID, Client: r.Client, Class: r.Class, Attempt: r.Attempt, Track: r.Track,
		Charges: encodeCharges(r.Charges),
		// A session may read them when their caller has them back.
		Attributes: maps.Clone(r.Attributes), Amounts: maps.Clone(r.Amounts),
	}
	charges, ok := c.charged.Of(r.work())
	if ok {
		if revision, ok := c.machine.Known(r.Client, charges); ok {
			request.KnownRevision = &revision
		}
	}
	message := &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{Acquire: request}}
	return &authority.Question{
		Message: message, Safe: r.Track || !c.config.OnceOnly,
		Anyone: ok && !r.Track && r.MaxWait == 0 && c.isHeld(charges),
	}
}

// isHeld says whether nodes granted from tokens that they held when all of these were
// asked for last: then any node may be asked, and every node is now and then, so that
// those that are left when one dies hold some.
func (c *Client) isHeld(charges []failopen.Charge) bool {
	for i := range charges {
		if !c.held.Has(charges[i].Limit, charges[i].Key) {
			return false
		}
	}
	return len(charges) > 0
}

// note notes where the answer to an acquire without a record came from.
// That a cold node had none says nothing of the others.
func (c *Client) note(r *Request, answer *quorleasev1.AcquireResponse, cold bool) {
	held := answer.GetSource() == quorleasev1.Source_ESCROW
	if r.Track || r.MaxWait > 0 || cold && !held {
		return
	}
	if len(r.Attributes) == 0 {
		for i := range r.Charges {
			c.held.Note(r.Charges[i].Limit, r.Charges[i].Key, held)
		}
		return
	}
	for _, charge := range answer.GetLease().GetCharges() {
		c.held.Note(charge.GetLimit(), charge.GetKey(), held)
	}
}

// work is what the request says of its work.
func (r *Request) work() *charged.Work {
	return &charged.Work{
		Client: r.Client, Class: r.Class, Attributes: r.Attributes, Amounts: r.Amounts,
		Charges: localCharges(r.Charges),
	}
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
	charges, known := c.charged.Of(r.work())
	if !known && c.config.Fallback.Mode != failopen.Open {
		return refusedLocally(failopen.Verdict{Reason: failopen.Refused, Charge: -1, RetryAfter: time.Second}, nil)
	}
	v := c.machine.Decide(now, failopen.Request{Client: r.Client, Class: r.Class, Attempt: r.Attempt, Charges: charges})
	if !v.Admit {
		return refusedLocally(v, charges)
	}
	c.reporter.Owe()
	lease := Lease{ID: r.LeaseID, Charges: r.Charges, Ends: now.Add(localLife), Tracked: r.Track, Local: true}
	if len(r.Attributes) > 0 {
		lease.Charges = make([]Charge, len(charges))
		for i, one := range charges {
			lease.Charges[i] = Charge(one)
		}
	}
	return &Decision{Granted: true, Source: Local, Lease: lease}
}

// refusedLocally is the answer to a request for charges that this client refuses by
// itself.
func refusedLocally(v failopen.Verdict, charges []failopen.Charge) *Decision {
	denial := Denial{Reason: localReason(v.Reason), RetryAfter: v.RetryAfter, Never: v.Never, FreesIn: v.FreesIn}
	if v.Charge >= 0 && v.Charge < len(charges) {
		charge := &charges[v.Charge]
		denial.Limit, denial.Key, denial.Dimension = charge.Limit, charge.Key, charge.Dimension
	}
	return &Decision{Source: Local, Denials: []Denial{denial}}
}

// learn keeps what an answer says, and counts what it granted for the retry
// budget.
func (c *Client) learn(r *Request, answer *quorleasev1.AcquireResponse, cold bool) {
	if answer.GetDecision() == quorleasev1.Decision_GRANTED && !answer.GetRepeatedRequest() {
		c.machine.Count(time.Now(), r.Client, 1, min(1, int64(r.Attempt)))
	}
	if len(r.Attributes) > 0 && answer.GetDecision() == quorleasev1.Decision_GRANTED {
		c.charged.Note(r.work(), localCharges(chargesOf(answer.GetLease().GetCharges())))
	}
	c.note(r, answer, cold)
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
		c.refresher.Learnt()
	}
}
