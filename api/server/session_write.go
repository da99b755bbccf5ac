package server

import (
	"errors"
	"fmt"

	"github.com/quorlease/quorlease/api/codec/items"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/sharing"
	"github.com/quorlease/quorlease/fsm"
)

// writer sends answers until there can be no more, and ends what was tied to the
// session.
func (s *session) writer() (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = s.server.failure(sessionMethod, panicked, nil)
		}
		s.abandon()
		if tie := s.tie.Load(); tie != nil {
			tie.End(s.stream.Context(), s.server.isDraining())
		}
	}()
	return s.write()
}

// write sends answers until there can be no more.
func (s *session) write() error {
	for {
		select {
		case <-s.wake:
		case <-s.stream.Context().Done():
			return s.stream.Context().Err()
		case <-s.server.drainCtx.Done():
			return s.drain()
		}
		finished, err := s.flush()
		if finished || err != nil {
			return err
		}
	}
}

// drain answers what is open and ends the session.
func (s *session) drain() error {
	for {
		s.mu.Lock()
		idle := s.open == 0
		// Nothing gets in between the last answer and the end.
		s.over = s.over || idle
		s.mu.Unlock()
		if idle {
			return errDraining
		}
		select {
		case <-s.wake:
		case <-s.stream.Context().Done():
			return s.stream.Context().Err()
		}
		finished, err := s.flush()
		if finished || err != nil {
			return err
		}
	}
}

// flush sends all that is ready. finished says that nothing will follow: the
// client has said all and has all its answers, or it made a mistake.
func (s *session) flush() (finished bool, err error) {
	for {
		s.mu.Lock()
		batch, sealed := s.ready, s.sealed
		s.ready, s.sealed = nil, nil
		finished, err = s.read && (s.open == 0 || s.readErr != nil), s.readErr
		s.mu.Unlock()
		if len(batch)+len(sealed) == 0 {
			return finished, err
		}
		if err := s.sendAll(batch, sealed); err != nil {
			return true, err
		}
	}
}

// sendAll sends a batch, and answers that are encoded, in as few messages as the bounds
// allow.
func (s *session) sendAll(batch []*item, sealed []answers) error {
	sealed, err := seal(batch, sealed)
	for err == nil && len(sealed) > 0 {
		sealed, err = s.sendSome(sealed)
	}
	// What can't be sent any more is closed all the same.
	for _, some := range sealed {
		s.sent(some.count, some.cost)
	}
	return err
}

// seal encodes a batch behind what is encoded. Where that is an error all of it is there
// to be closed.
func seal(batch []*item, sealed []answers) ([]answers, error) {
	var errs []error
	for _, it := range batch {
		last := len(sealed) - 1
		if last < 0 || sealed[last].isFull() {
			sealed, last = append(sealed, answers{}), last+1
		}
		to := &sealed[last]
		bytes, err := items.Append(to.bytes, it.response())
		errs = append(errs, err)
		to.bytes, to.count, to.cost = bytes, to.count+1, to.cost+it.cost
	}
	return sealed, errors.Join(errs...)
}

// sendSome sends one message and returns the rest.
func (s *session) sendSome(sealed []answers) ([]answers, error) {
	n, sum := 0, answers{}
	for ; n < len(sealed); n++ {
		one := &sealed[n]
		if n > 0 && (sum.count+one.count > itemsMax || s.reply.Len()+len(one.bytes) > sessionMax) {
			break
		}
		s.reply.Add(one.bytes)
		sum.count, sum.cost = sum.count+one.count, sum.cost+one.cost
	}
	s.stall.Reset(sendWithin)
	err := s.stream.SendMsg(&s.reply)
	s.stall.Stop()
	s.sent(sum.count, sum.cost)
	s.reply.Reset()
	for _, one := range sealed[:n] {
		giveRoom(one.bytes)
	}
	return sealed[n:], err
}

// sent closes items whose answers are on their way.
func (s *session) sent(count int, cost int64) {
	s.server.itemBytes.Add(-cost)
	s.mu.Lock()
	s.open -= count
	s.mu.Unlock()
	signal(s.space)
}

// answerItem is an answer to an acquire and its wrapping in one piece of memory.
type answerItem struct {
	item    quorleasev1.ResponseItem
	acquire quorleasev1.ResponseItem_Acquire
}

// response turns what became of an item into its answer.
func (it *item) response() *quorleasev1.ResponseItem {
	all := &answerItem{}
	out := &all.item
	out.Seq = it.seq
	err := it.err
	if refused := it.result.GetRefusal(); refused != nil {
		err = &fsm.Refused{Refusal: refused}
	}
	if err == nil {
		err = it.fill(all)
	}
	if err != nil {
		e := it.session.server.failure(sessionMethod, nil, err)
		out.Answer = &quorleasev1.ResponseItem_Error{Error: ErrorOf(e).GRPCStatus().Proto()}
	}
	return out
}

func (it *item) fill(all *answerItem) error {
	out := &all.item
	acquired, lease := it.result.GetAcquire(), it.result.GetLease()
	if it.peek != nil {
		out.Answer = &quorleasev1.ResponseItem_Peek{Peek: convert.PeekAnswer(acquired)}
		return nil
	}
	if it.refreshed != nil {
		out.Answer = &quorleasev1.ResponseItem_Refresh{Refresh: it.refreshed}
		return nil
	}
	switch op := it.pending.Operation.GetKind().(type) {
	case *logv1.Operation_Acquire:
		if acquired != nil {
			answer := convert.AcquireAnswer(op.Acquire, acquired)
			answer.Fallbacks = sharing.Fallbacks(it.session.stream.Context(), it.session.server.node, it.known, op.Acquire)
			all.acquire.Acquire, out.Answer = answer, &all.acquire
			return nil
		}
	case *logv1.Operation_Settle:
		if lease != nil {
			out.Answer = &quorleasev1.ResponseItem_Settle{Settle: convert.SettleAnswer(lease)}
			return nil
		}
	case *logv1.Operation_Release:
		if lease != nil {
			out.Answer = &quorleasev1.ResponseItem_Release{Release: convert.ReleaseAnswer(lease)}
			return nil
		}
	case *logv1.Operation_Renew:
		if lease != nil {
			out.Answer = &quorleasev1.ResponseItem_Renew{Renew: convert.RenewAnswer(lease)}
			return nil
		}
	}
	return fmt.Errorf("the node answered %T with %T", it.pending.Operation.GetKind(), it.result.GetKind())
}
