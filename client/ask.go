package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/members"
	"github.com/quorlease/quorlease/client/session"
)

const (
	// electionPause is about how long to wait before asking again in an election:
	// from a half of it to one and a half.
	electionPause = 50 * time.Millisecond
	// partMin is the least that one node gets of a deadline.
	partMin = 20 * time.Millisecond
	// atOnceMax is how often another node is asked without a pause.
	atOnceMax = 3
	// fairDeadline is the shortest deadline that says something about the authority
	// when it passes, rather than about the caller.
	fairDeadline = 50 * time.Millisecond
)

// ErrUnanswered: no node has answered in time. What was asked may have happened
// or not; where it has a lease id it may be repeated as it is (G4).
var ErrUnanswered = errors.New("unanswered")

// question is one operation, as often as it has to be asked.
type question struct {
	// message carries the operation; every asking wraps it anew.
	message *quorleasev1.RequestItem
	// safe: to repeat it has the effect of one, whatever became of it (G4).
	safe bool
	// patient: go on although the client is away, as probes do.
	patient bool

	// asked is how often it was asked.
	asked int
	// refused are the nodes that see no majority; lost: all of them, or one was
	// asked twice because nobody else is left.
	refused map[string]bool
	lost    bool
	// heard: a signal was observed that explains why nobody answers.
	heard bool
}

// next says what becomes of a question after an error.
type next int

const (
	// finish: the error is the answer.
	finish next = iota
	// again: ask another node at once.
	again
	// later: ask after a pause.
	later
	// giveUp: nobody is going to answer.
	giveUp
)

// ask asks until there is an answer, as long as ctx lasts. The error is
// ErrUnanswered, ErrClosed, ctx's where its caller left, or what the authority
// answered.
func (c *Client) ask(ctx context.Context, q *question) (*quorleasev1.ResponseItem, error) {
	began := time.Now()
	for {
		if c.stopped.Load() {
			return nil, ErrClosed
		}
		if !q.patient && c.machine.Away() {
			return nil, fmt.Errorf("%w: the client is away", ErrUnanswered)
		}
		answer, err := c.askOne(ctx, q)
		if err == nil {
			c.observe(began, failopen.Answered)
			return answer, nil
		}
		step := c.judge(q, err)
		if step == finish {
			return nil, err
		}
		q.rest(ctx, step)
		if ctx.Err() != nil || step == giveUp {
			return nil, c.unanswered(ctx, q, began, err)
		}
	}
}

// rest keeps a question from being asked in a tight loop, whatever goes wrong.
func (q *question) rest(ctx context.Context, step next) {
	q.asked++
	if step == later || step == again && q.asked > atOnceMax {
		pause(ctx, electionPause/2+rand.N(electionPause))
	}
}

// unanswered is the end of a question that nobody answered.
func (c *Client) unanswered(ctx context.Context, q *question, began time.Time, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if !q.heard && ctx.Err() != nil {
		c.slow(ctx, began)
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, cause)
}

// slow takes in that the deadline passed of a call that began at began. One that
// was too short to tell is left to the prober.
func (c *Client) slow(ctx context.Context, began time.Time) {
	if deadline, _ := ctx.Deadline(); deadline.Sub(began) < fairDeadline {
		wake(c.doubt)
		return
	}
	c.observe(began, failopen.Slow)
}

// askOne asks one node, within its part of the deadline.
func (c *Client) askOne(ctx context.Context, q *question) (*quorleasev1.ResponseItem, error) {
	s, node, err := c.members.Session(ctx)
	if err != nil {
		return nil, err
	}
	part, cancel := c.part(ctx, q)
	defer cancel()
	item := &quorleasev1.RequestItem{Operation: q.message.GetOperation()}
	began := time.Now()
	answer, err := s.Do(part, item)
	if err == nil && !answers(answer, item) {
		answer, err = nil, errNonsense
	}
	if err != nil && isFair(ctx, began) {
		c.members.Failed(node, err)
	}
	if session.Reason(err) == "NO_QUORUM" {
		q.minority(node)
	}
	return answer, err
}

// errNonsense: a node has answered something that is no answer to what it was
// asked. It is as good as silence, and held against the node.
var errNonsense = errors.New("the node's answer is none to what it was asked")

// answers says whether what came back can be an answer to what was asked: a
// decision with what belongs to it, or the outcome of the same operation.
func answers(answer *quorleasev1.ResponseItem, item *quorleasev1.RequestItem) bool {
	switch asked := item.GetOperation().(type) {
	case *quorleasev1.RequestItem_Acquire:
		r := answer.GetAcquire()
		if r.GetDecision() != quorleasev1.Decision_GRANTED {
			return r.GetDecision() == quorleasev1.Decision_DENIED && len(r.GetDenials()) > 0
		}
		id := asked.Acquire.GetLeaseId()
		return r.GetLease() != nil && (id == "" || r.GetLease().GetId() == id)
	case *quorleasev1.RequestItem_Settle:
		return answer.GetSettle() != nil
	case *quorleasev1.RequestItem_Release:
		return answer.GetRelease() != nil
	case *quorleasev1.RequestItem_Renew:
		return answer.GetRenew() != nil
	case *quorleasev1.RequestItem_Peek:
		return answer.GetPeek() != nil
	default:
		return true
	}
}

// isFair says whether what became of a question can be held against a node: not
// when its caller left, or was in too much of a hurry.
func isFair(ctx context.Context, began time.Time) bool {
	return ctx.Err() == nil ||
		errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(began) >= fairDeadline
}

// part gives a hung node half of the time that is left, so that there is enough
// for another one. A question that must not be asked twice has all of it.
func (c *Client) part(ctx context.Context, q *question) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || !q.safe || len(c.members.All()) < 2 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, max(time.Until(deadline)/2, partMin))
}

// minority keeps in mind that a node is on the wrong side of a partition.
func (q *question) minority(node members.Endpoint) {
	if q.refused == nil {
		q.refused = make(map[string]bool)
	}
	q.lost = q.refused[node.Address]
	q.refused[node.Address] = true
}

// judge says how to go on after an error, and observes what it tells about the
// authority.
func (c *Client) judge(q *question, err error) next {
	if errors.Is(err, members.ErrClosed) {
		return again
	}
	if errors.Is(err, members.ErrUnreachable) {
		q.heard = true
		c.observe(time.Now(), failopen.Unreachable)
		return giveUp
	}
	switch session.Reason(err) {
	case "NO_LEADER":
		q.heard = true
		c.observe(time.Now(), failopen.NoLeader)
		return later
	case "NO_QUORUM":
		return c.judgeMinority(q)
	case "OVERLOADED", "DISK_LOW":
		return later
	case "SHUTTING_DOWN":
		return again
	}
	if session.MayHaveHappened(err) {
		if isAnswer(err) {
			return finish
		}
		if !q.safe {
			return giveUp
		}
		return again
	}
	if errors.Is(err, session.ErrUnsent) {
		return again
	}
	c.observe(time.Now(), failopen.Answered)
	return finish
}

// judgeMinority: a node that sees no majority may be the only one. When nobody
// says otherwise it is true.
func (c *Client) judgeMinority(q *question) next {
	if !q.lost && len(q.refused) < len(c.members.All()) {
		return again
	}
	q.heard = true
	c.observe(time.Now(), failopen.NoQuorum)
	return giveUp
}

// isAnswer says whether an error of which it is unknown whether it happened is
// an answer nevertheless, because to ask anybody again would give the same.
func isAnswer(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.Unimplemented, codes.FailedPrecondition, codes.OutOfRange:
		return !errors.Is(err, session.ErrEnded)
	default:
		return false
	}
}
