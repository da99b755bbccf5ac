package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/expand"
)

// prepare turns a request into what it asks for.
func (s *session) prepare(it *item, request *quorleasev1.RequestItem) error {
	if r := request.GetPeek(); r != nil {
		op, err := convert.Peek(r)
		it.peek, it.looks, it.described = op, true, convert.Described(r, op)
		return err
	}
	if r := request.GetRefresh(); r != nil {
		var err error
		it.refreshed, err = s.sharing.Refresh(r)
		return err
	}
	op, attempt, err := s.operation(request)
	it.pending.Operation, it.pending.Attempt = op, attempt
	it.pending.Done = func(r *logv1.Result, err error) { s.done(it, r, err) }
	if r := request.GetAcquire(); r != nil && err == nil {
		it.known, it.pending.MaxWait = r.KnownRevision, r.GetMaxWait().AsDuration()
		it.pending.Team = r.GetAttributes()["team"]
		it.described = convert.Described(r, op.GetAcquire())
		err = s.expand(s.stream.Context(), it)
	}
	return err
}

// operation is what an item asks the log for.
func (s *session) operation(request *quorleasev1.RequestItem) (op *logv1.Operation, attempt uint32, err error) {
	switch r := request.GetOperation().(type) {
	case *quorleasev1.RequestItem_Acquire:
		if op, err = convert.Acquire(r.Acquire, s.owner); err == nil && op.GetAcquire().GetClient() == "" {
			op.GetAcquire().Client = s.hello.GetClient()
		}
		return op, r.Acquire.GetAttempt(), err
	case *quorleasev1.RequestItem_Settle:
		op, err = convert.Settle(r.Settle, s.owner)
	case *quorleasev1.RequestItem_Release:
		if op, err = convert.Release(r.Release, s.owner); err == nil && op.GetRelease().GetClient() == "" {
			op.GetRelease().Client = s.hello.GetClient()
		}
	case *quorleasev1.RequestItem_Renew:
		if op, err = convert.Renew(r.Renew, s.owner); err == nil {
			s.tie.Load().Renew(op.GetRenew())
		}
	default:
		err = convert.Wrong("operation", "missing: acquire, settle, release, renew, peek, refresh or cancel")
	}
	return op, 0, err
}

// expand gives an acquire its charges, and the session that slots are tied to.
func (s *session) expand(ctx context.Context, it *item) error {
	op := it.pending.Operation.GetAcquire()
	it.tries++
	if err := s.server.expander.Acquire(ctx, op, it.described); err != nil {
		return err
	}
	s.tie.Load().Acquire(op)
	return nil
}

// isStale says that an acquire has to be expanded again: the limits are others than
// those that its charges were made from.
func (it *item) isStale(r *logv1.Result) bool {
	return it.described != nil && it.peek == nil && it.tries < expand.TriesMax && expand.IsStale(r.GetRefusal())
}

// repeat expands an acquire again and submits it as another item with its seq: what
// the node has had can't be handed to it twice.
func (s *session) repeat(ctx context.Context, it *item) {
	next := &item{session: s, seq: it.seq, cost: it.cost, known: it.known, described: it.described, tries: it.tries}
	next.pending.Operation = proto.CloneOf(it.pending.Operation)
	next.pending.Attempt, next.pending.MaxWait = it.pending.Attempt, it.pending.MaxWait
	next.pending.Deadline, next.pending.Team = it.pending.Deadline, it.pending.Team
	next.pending.Done = func(r *logv1.Result, err error) { s.done(next, r, err) }
	err := s.expand(ctx, next)
	s.mu.Lock()
	if s.items[it.seq] != it {
		// It was cancelled meanwhile.
		s.mu.Unlock()
		return
	}
	s.items[it.seq] = next
	s.mu.Unlock()
	if err != nil {
		s.done(next, nil, err)
		return
	}
	s.server.node.Submit(&next.pending)
	s.submitted(next)
}
