package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/api/server/expand"
)

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
	next.pending.Deadline = it.pending.Deadline
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
