package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/grant"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm"
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
	// Done is called exactly once, from any goroutine, possibly before Submit
	// returns. It must not block: it may hold up the answers of a whole entry.
	// Either the result is set or the error.
	Done func(*logv1.Result, error)

	node *Node
	item door.Item
	// arrived is when it was handed in.
	arrived time.Time
	// ruling is what its client's retry budget makes of it.
	ruling retries.Ruling
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
		p.node.budgets.Finished(acquire, &p.ruling, result.GetAcquire(), MayHaveHappened(err))
		p.node.grants.Finished(acquire, p.hold, result.GetAcquire(), err)
		if decided := result.GetAcquire(); decided != nil {
			now := time.Now()
			p.node.metrics.Decided(acquire, decided, now.Sub(p.arrived))
			p.node.overview.Decided(now, acquire, decided, now.Sub(p.arrived))
			p.node.audit.Decided(acquire, p.Attempt, decided)
			p.node.usage.Decided(acquire, p.Team, decided)
		}
	}
	if settle := p.Operation.GetSettle(); settle != nil {
		p.node.usage.Settled(settle, result.GetLease())
	}
	p.Done(result, err)
}

// Submit is the single door for operations: it decides what can be decided
// here, and hands the rest to the leader. It does not block. p.Done is called
// exactly once; see MayHaveHappened for what its error says.
func (n *Node) Submit(p *Pending) {
	p.node, p.arrived = n, time.Now()
	last := p.arrived.Add(n.config.MaxWait + min(p.MaxWait, waitMax))
	if p.Deadline.IsZero() || p.Deadline.After(last) {
		p.Deadline = last
	}
	p.item = door.Item{
		Operation: p.Operation, Deadline: p.Deadline, Owner: (*pendingOwner)(p),
		MaxWait: max(0, p.MaxWait), Since: p.arrived,
	}
	if denied := n.budgets.Refused(p.Operation.GetAcquire(), p.Attempt, &p.ruling); denied != nil {
		p.item.Owner.Answer(denied, nil)
		return
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
		it.Owner.Answer(refusal(logv1.Refusal_CAUSE_BAD_FIELD, "operation", err.Error()), nil)
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

func refusal(cause logv1.Refusal_Cause, field, message string) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Refusal{
		Refusal: &logv1.Refusal{Cause: cause, Field: field, Message: message},
	}}
}
