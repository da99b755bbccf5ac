package authority

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

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
	// anyPatience is how long the first node is waited for that is asked what any node may
	// answer from memory, while there is another one that is as good.
	anyPatience = 100 * time.Millisecond
	// turnLength is how long a node's turn lasts to be asked such things: long enough for
	// callers to travel together, and so short that every node is asked all the time.
	turnLength = 10 * time.Millisecond
	// fairDeadline is the shortest deadline that says something about the authority
	// when it passes, rather than about the caller.
	fairDeadline = 50 * time.Millisecond
)

// ErrClosed: the client was closed.
var ErrClosed = errors.New("client closed")

// ErrUnanswered: no node has answered in time. What was asked may have happened
// or not; where it has a lease id it may be repeated as it is (G4).
var ErrUnanswered = errors.New("unanswered")

// Question is one operation, as often as it has to be asked. It is not for
// concurrent use.
type Question struct {
	// Message carries the operation; every asking wraps it anew.
	Message *quorleasev1.RequestItem
	// Safe: to repeat it has the effect of one, whatever became of it (G4).
	Safe bool
	// Anyone: any node may have what is asked for in its memory, whoever leads.
	Anyone bool
	// WaitsUntil is until when an acquire may wait in the authority's queue. Zero:
	// not at all.
	WaitsUntil time.Time

	// patient: go on although the client is away, as probes do.
	patient bool
	// Cold: the node that answered was reached so lately that it may hold less than it is
	// going to.
	Cold bool

	// asked is how often it was asked in vain.
	asked int
	// refused are the nodes that see no majority; lost: one was asked twice because
	// nobody else is left, and no other one elects a leader.
	refused      map[string]bool
	lost, elects bool
	// tried are the nodes that were asked in vain: others come first for what any node may
	// have.
	tried map[string]bool
	// heard: a signal was observed that explains why nobody answers.
	heard bool
}

// Repeated says whether it was asked more than once.
func (q *Question) Repeated() bool { return q.asked > 0 }

// Ask asks until there is an answer, as long as ctx lasts. The error is
// ErrUnanswered, ErrClosed, ctx's where its caller left, or what the authority
// answered.
func (a *Authority) Ask(ctx context.Context, q *Question) (*quorleasev1.ResponseItem, error) {
	began := time.Now()
	for {
		if a.stopped.Load() {
			return nil, ErrClosed
		}
		if !q.patient && a.machine.Away() {
			return nil, fmt.Errorf("%w: the client is away", ErrUnanswered)
		}
		answer, err := a.askOne(ctx, q)
		if err == nil {
			a.observe(began, failopen.Answered)
			return answer, nil
		}
		step := a.judge(q, err)
		if step == finish {
			return nil, err
		}
		q.rest(ctx, step)
		if ctx.Err() != nil || step == giveUp {
			return nil, a.unanswered(ctx, q, began, err)
		}
	}
}

// ElectionPause is about how long to wait before asking again while nobody answers.
func ElectionPause() time.Duration { return electionPause/2 + rand.N(electionPause) }

// rest keeps a question from being asked in a tight loop, whatever goes wrong.
func (q *Question) rest(ctx context.Context, step next) {
	q.asked++
	if step == later || step == again && q.asked > atOnceMax {
		Pause(ctx, ElectionPause())
	}
}

// unanswered is the end of a question that nobody answered.
func (a *Authority) unanswered(ctx context.Context, q *Question, began time.Time, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if !q.heard && ctx.Err() != nil {
		a.slow(ctx, began)
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, cause)
}

// slow takes in that the deadline passed of a call that began at began. One that
// was too short to tell is left to the prober.
func (a *Authority) slow(ctx context.Context, began time.Time) {
	if deadline, _ := ctx.Deadline(); deadline.Sub(began) < fairDeadline {
		wake(a.doubt)
		return
	}
	a.observe(began, failopen.Slow)
}

// askOne asks one node, within its part of the deadline.
func (a *Authority) askOne(ctx context.Context, q *Question) (*quorleasev1.ResponseItem, error) {
	s, node, err := a.session(ctx, q)
	if err != nil {
		return nil, err
	}
	part, cancel, hedged := a.part(ctx, q, node)
	defer cancel()
	part, done := a.attend(part, q, s)
	defer done()
	began := time.Now()
	item := q.item(began)
	answer, err := s.Do(part, item)
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(part), errSilent) {
		err = errSilent
		a.departures.Pay()
	}
	if err == nil && !answers(answer, item) {
		answer, err = nil, errNonsense
	}
	if err == nil {
		a.answered(q, node, answer)
		return answer, nil
	}
	q.try(node)
	reason := session.Reason(err)
	if reason == "NO_QUORUM" {
		q.minority(node)
	}
	switch {
	case !isFair(ctx, began):
	case !q.Anyone:
		a.members.Failed(node, err)
	case reason == "NO_LEADER":
		// It has nothing left of one bucket, and knows no leader who might. That says nothing of
		// what it has of others.
	case errors.Is(err, context.DeadlineExceeded):
		if hedged {
			a.hedges.Pay()
		}
		a.members.Slow(node)
	default:
		a.members.Failed(node, err)
	}
	return nil, err
}

// answered notes what an answer to what any node may have says about the node.
func (a *Authority) answered(q *Question, node members.Endpoint, answer *quorleasev1.ResponseItem) {
	a.departures.Answered()
	if !q.Anyone {
		return
	}
	q.Cold = a.members.Answered(node)
	if answer.GetAcquire().GetSource() == quorleasev1.Source_ESCROW {
		a.hedges.Answered()
	}
}

// session is one to the node that is asked now.
func (a *Authority) session(ctx context.Context, q *Question) (*session.Session, members.Endpoint, error) {
	if !q.Anyone {
		return a.members.Session(ctx)
	}
	return a.members.Any(ctx, a.turn(time.Now()), q.tried)
}

// turn says whose turn it is. It is drawn, so that nothing that happens at regular
// distances always meets the same node, and differs from client to client.
func (a *Authority) turn(now time.Time) uint64 {
	n := (uint64(now.UnixNano())/uint64(turnLength) + a.salt) * 0x9e3779b97f4a7c15
	return (n ^ n>>32) * 0xd6e8feb86659fd93 >> 32
}

// isFair says whether what became of a question can be held against a node: not
// when its caller left, or was in too much of a hurry.
func isFair(ctx context.Context, began time.Time) bool {
	return ctx.Err() == nil ||
		errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(began) >= fairDeadline
}

// item is the question as it is asked at now. What it may wait is what is left of
// that.
func (q *Question) item(now time.Time) *quorleasev1.RequestItem {
	acquire := q.Message.GetAcquire()
	if acquire == nil || q.WaitsUntil.IsZero() {
		return &quorleasev1.RequestItem{Operation: q.Message.GetOperation()}
	}
	// A session may still read what was asked before.
	acquire = proto.CloneOf(acquire)
	acquire.MaxWait = durationpb.New(max(0, q.WaitsUntil.Sub(now)))
	return &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{Acquire: acquire}}
}

// part gives a hung node half of the time that is left, so that there is enough
// for another one. A question that must not be asked twice has all of it. What
// waits in a queue is no hung node's doing: it has half of what is left after that.
// What any node may answer from memory is not waited for long while there is another
// node; once all are in doubt it is, so that a slow authority is not asked twice as much.
// hedged: it has less for that reason.
func (a *Authority) part(
	ctx context.Context, q *Question, node members.Endpoint,
) (part context.Context, cancel context.CancelFunc, hedged bool) {
	deadline, ok := ctx.Deadline()
	if !ok || !q.Safe || len(a.members.All()) < 2 {
		return ctx, func() {}, false
	}
	now := time.Now()
	waits := min(max(0, q.WaitsUntil.Sub(now)), max(0, deadline.Sub(now)))
	half := max((deadline.Sub(now)-waits)/2, partMin)
	if q.Anyone && q.asked == 0 && half > anyPatience && a.hedges.Left() && a.members.Spare(q.tried, node) {
		half, hedged = anyPatience, true
	}
	part, cancel = context.WithTimeout(ctx, waits+half)
	return part, cancel, hedged
}
