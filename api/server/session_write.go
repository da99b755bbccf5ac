package server

import (
	"fmt"

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
		batch := s.ready
		s.ready = nil
		finished, err = s.read && (s.open == 0 || s.readErr != nil), s.readErr
		s.mu.Unlock()
		if len(batch) == 0 {
			return finished, err
		}
		if err := s.sendAll(batch); err != nil {
			return true, err
		}
	}
}

// sendAll sends a batch in as few messages as the bounds allow.
func (s *session) sendAll(batch []*item) error {
	var list []*quorleasev1.ResponseItem
	var cost, size int64
	count := 0
	send := func() error {
		if len(list) == 0 {
			return nil
		}
		s.stall.Reset(sendWithin)
		err := s.stream.Send(&quorleasev1.SessionResponse{Kind: &quorleasev1.SessionResponse_Items{
			Items: &quorleasev1.ResponseItems{Items: list},
		}})
		s.stall.Stop()
		s.sent(count, cost)
		list, size, cost, count = nil, 0, 0, 0
		return err
	}
	for i, it := range batch {
		one := it.response()
		n := int64(one.SizeVT())
		if len(list) == itemsMax || size+n > sessionMax {
			if err := send(); err != nil {
				s.forget(batch[i:])
				return err
			}
		}
		list = append(list, one)
		size += n
		cost += it.cost
		count++
	}
	return send()
}

// sent closes items whose answers are on their way.
func (s *session) sent(count int, cost int64) {
	s.server.itemBytes.Add(-cost)
	s.mu.Lock()
	s.open -= count
	s.mu.Unlock()
	signal(s.space)
}

// forget closes items that can't be sent any more.
func (s *session) forget(rest []*item) {
	cost := int64(0)
	for _, it := range rest {
		cost += it.cost
	}
	s.sent(len(rest), cost)
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
