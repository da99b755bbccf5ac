package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/escrow"
	"github.com/quorlease/quorlease/cluster/grant"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// Pending is one operation that waits for its answer. The caller fills in the
// exported fields, hands it to Submit and does not touch it again until Done
// was called; it must not be used twice.
type Pending struct {
	// Operation is what to do. It is read until Done is called and must not be
	// changed meanwhile.
	Operation *logv1.Operation
	// Attempt is how many retries were made before for this piece of work. It
	// decides for acquires only.
	Attempt uint32
	// Deadline is when the caller stops waiting. Zero, or later than MaxWait and the
	// node's own from now, means those from now.
	Deadline time.Time
	// MaxWait is how long an acquire may wait in the leader's queue. 0: not at all.
	MaxWait time.Duration
	// Team is whom an acquire is for beside its client, for the book of usage.
	Team string
	// Arrived is when it came to this node. Zero: as it is handed in.
	Arrived time.Time
	// Done is called exactly once, from any goroutine, possibly before Submit
	// returns. It must not block: it may hold up the answers of a whole entry.
	// Either the result is set or the error.
	Done func(*logv1.Result, error)

	node *Node
	item door.Item
	// ruling is what its client's retry budget makes of it, once it is ruled.
	ruling retries.Ruling
	ruled  bool
	// hold is the escrow that may pay for it.
	hold grant.Hold
}

// pendingOwner is a Pending as the door sees it.
type pendingOwner Pending

// Answer implements door.Owner: it counts the answer and passes it on.
func (o *pendingOwner) Answer(result *logv1.Result, err error) {
	p := (*Pending)(o)
	// Doubtful is written by whoever has an item that was proposed. A deadline that passes
	// meanwhile says enough by itself, and must not read it.
	if !MayHaveHappened(err) && p.item.Doubtful {
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if acquire := p.Operation.GetAcquire(); acquire != nil {
		p.node.count(p, acquire, result.GetAcquire(), err)
	}
	p.node.usage.Answered(p.Operation, result.GetLease())
	p.Done(result, err)
}

// count takes what became of an acquire.
func (n *Node) count(p *Pending, acquire *logv1.Acquire, decided *logv1.AcquireResult, err error) {
	n.budgets.Finished(acquire, &p.ruling, decided, MayHaveHappened(err))
	n.grants.Finished(acquire, p.hold, decided, err)
	if decided == nil {
		return
	}
	now := time.Now()
	n.metrics.Decided(acquire, decided, now.Sub(p.Arrived))
	n.overview.Decided(now, acquire, decided, now.Sub(p.Arrived))
	n.audit.Decided(acquire, p.Attempt, decided)
	n.usage.Decided(now, acquire, p.Team, decided)
}

// Grant answers an acquire that needs no log entry: one that a retry budget refuses, and
// one that this node grants from what it holds. It is nil for others, which are to be
// submitted. Neither Done nor Deadline counts, and nothing is kept of p or of what it
// points to but texts: all of it, room and answer may be used again.
func (n *Node) Grant(p *Pending, room *escrow.Room) *logv1.Result {
	acquire := p.Operation.GetAcquire()
	if acquire == nil {
		return nil
	}
	if p.Arrived.IsZero() {
		p.Arrived = time.Now()
	}
	answer := n.budgets.Refused(acquire, p.Attempt, &p.ruling)
	if p.ruled = true; answer == nil {
		answer = n.grants.Grant(acquire, room)
	}
	if answer != nil {
		n.count(p, acquire, answer.GetAcquire(), nil)
	}
	return answer
}

// Instead makes p the acquire that goes on where Grant was nil for another one like it,
// which is not used any more.
func (p *Pending) Instead(of *Pending) {
	p.Arrived, p.ruling, p.ruled = of.Arrived, of.ruling, of.ruled
}

// Submit is the single door for operations: it decides what can be decided
// here, and hands the rest to the leader. It does not block. p.Done is called
// exactly once; see MayHaveHappened for what its error says.
func (n *Node) Submit(p *Pending) {
	p.node = n
	if p.Arrived.IsZero() {
		p.Arrived = time.Now()
	}
	last := p.Arrived.Add(n.config.MaxWait + min(p.MaxWait, waitMax))
	if p.Deadline.IsZero() || p.Deadline.After(last) {
		p.Deadline = last
	}
	p.item = door.Item{
		Operation: p.Operation, Deadline: p.Deadline, Owner: (*pendingOwner)(p),
		MaxWait: max(0, p.MaxWait), Since: p.Arrived,
	}
	if !p.ruled {
		if denied := n.budgets.Refused(p.Operation.GetAcquire(), p.Attempt, &p.ruling); denied != nil {
			p.item.Owner.Answer(denied, nil)
			return
		}
	}
	answer, propose := n.grants.Admit(p.Operation, p.MaxWait > 0, &p.hold)
	if answer != nil {
		p.item.Owner.Answer(answer, nil)
		return
	}
	p.item.Operation = propose
	n.enter(&p.item)
}

// waitMax is the longest that any acquire waits in the queue.
const waitMax = time.Hour

// enter lets an item in, of this node's callers or of another node's.
func (n *Node) enter(it *door.Item) {
	var err error
	if it.Size, err = batch.Size(it.Operation); err != nil {
		it.Owner.Answer(refuse.Result(refuse.Field("operation", "%v", err)), nil)
		return
	}
	if err := n.door.Admit(it); err != nil {
		it.Owner.Answer(nil, err)
		return
	}
	n.route(it)
}

// Cancel says that the caller of p has gone: p.Done is called with an error, if
// it was not called before. Call it after Submit has returned.
func (n *Node) Cancel(p *Pending) { n.door.Cancel(&p.item) }

// hopsMax bounds how often an operation that was certainly not proposed is
// handed to the next leader: two nodes that each take the other for the leader
// must not play ball with it.
const hopsMax = 3

// route hands a waiting item to the leader: this node, or another.
func (n *Node) route(it *door.Item) {
	if n.waiting.Take(it) || n.proposer.enqueue(it) {
		return
	}
	if it.Relayed {
		n.door.Answer(it, nil, outcome.ErrNotLeader)
		return
	}
	it.Hops++
	if it.Hops <= hopsMax && n.forwarder.Enqueue(it) {
		return
	}
	if !n.waiting.Hold(it) {
		n.door.Answer(it, nil, n.leaderless())
	}
}

// reroute sends a claimed item that certainly was not proposed on its way again.
func (n *Node) reroute(it *door.Item) {
	if n.door.Unclaim(it) {
		n.route(it)
	}
}

// Do submits one operation and waits for its result. A refusal comes back as a
// *fsm.Refused. It returns soon after ctx ends; then, and with
// ErrOutcomeUnknown, the operation may have happened (MayHaveHappened).
func (n *Node) Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error) {
	return n.Await(ctx, &Pending{Operation: op, Attempt: attempt})
}

// Await is Do for an operation that says more. It sets Deadline and Done.
func (n *Node) Await(ctx context.Context, p *Pending) (*logv1.Result, error) {
	if answer := n.Grant(p, nil); answer != nil {
		return answer, nil
	}
	type answer struct {
		result *logv1.Result
		err    error
	}
	done := make(chan answer, 1)
	p.Done = func(r *logv1.Result, err error) { done <- answer{r, err} }
	if deadline, ok := ctx.Deadline(); ok {
		p.Deadline = deadline
	}
	//nolint:contextcheck // the stream to the leader outlives the call
	n.Submit(p)
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		n.Cancel(p)
		a = <-done
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(a.err, context.Canceled) {
			if MayHaveHappened(a.err) {
				a.err = outcome.ErrDeadlineProposed
			} else {
				a.err = outcome.ErrDeadlineWaiting
			}
		}
	}
	if refused := a.result.GetRefusal(); refused != nil {
		return nil, &fsm.Refused{Refusal: refused}
	}
	return a.result, a.err
}

// Acquire is shorthand for Do with an acquire.
func (n *Node) Acquire(ctx context.Context, op *logv1.Acquire, attempt uint32) (*logv1.AcquireResult, error) {
	r, err := n.Do(ctx, &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}}, attempt)
	return r.GetAcquire(), err
}

// ApplyLimits is shorthand for Do with a change of limits.
func (n *Node) ApplyLimits(ctx context.Context, op *logv1.ApplyLimits) (*logv1.LimitsResult, error) {
	r, err := n.Do(ctx, &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: op}}, 0)
	return r.GetLimits(), err
}
