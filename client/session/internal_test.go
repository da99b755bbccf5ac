package session

import (
	"context"
	"errors"
	"testing"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// G10: a node that answers nothing makes this process hold so much and no more.
func TestCallersAreBounded(t *testing.T) {
	t.Run("G10", func(t *testing.T) {
		s := &Session{wake: make(chan struct{}, 1)}
		for range CallersMax {
			if err := s.enqueue(&call{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.enqueue(&call{}); !errors.Is(err, ErrUnsent) {
			t.Errorf("one more: %v", err)
		}
	})
}

// An answer that comes before the node was told that its caller left makes the
// telling needless; the next one who has the seq must not be cancelled by it.
func TestAnsweredBeforeItWasCancelled(t *testing.T) {
	s := &Session{wake: make(chan struct{}, 1)}
	c := &call{item: acquireItem()}
	if err := s.enqueue(c); err != nil {
		t.Fatal(err)
	}
	s.take(later)
	if s.leave(c, errClosed) {
		t.Fatal("it is over")
	}
	s.deliver(answerOf(c.seq))
	next := &call{item: acquireItem()}
	if err := s.enqueue(next); err != nil {
		t.Fatal(err)
	}
	if next.seq == c.seq {
		t.Fatalf("seq %d may still be cancelled", c.seq)
	}
	if items := s.take(later); len(items) != 1 || items[0].GetCancel() != nil {
		t.Errorf("sent %v", items)
	}
	third := &call{item: acquireItem()}
	if err := s.enqueue(third); err != nil || third.seq != c.seq {
		t.Errorf("seq %d is not free: %d, %v", c.seq, third.seq, err)
	}
}

// Who would be answered too late anyway is not sent: then it is certain that
// nothing happened.
func TestLateCallsAreNotSent(t *testing.T) {
	s := &Session{wake: make(chan struct{}, 1)}
	c := &call{item: acquireItem(), deadline: later, bounded: true, done: make(chan struct{}, 1)}
	if err := s.enqueue(c); err != nil {
		t.Fatal(err)
	}
	if items := s.take(later); len(items) != 0 || len(s.free) != 1 {
		t.Errorf("sent %v", items)
	}
	if <-c.done; !errors.Is(c.err, context.DeadlineExceeded) || MayHaveHappened(c.err) {
		t.Errorf("it ended with %v", c.err)
	}
}

// An answer that comes at the moment in which its caller leaves is his.
func TestLeavingWithTheAnswer(t *testing.T) {
	s := &Session{wake: make(chan struct{}, 1)}
	c := &call{item: acquireItem(), done: make(chan struct{}, 1)}
	if err := s.enqueue(c); err != nil {
		t.Fatal(err)
	}
	s.take(later)
	s.deliver(answerOf(c.seq))
	if !s.leave(c, errClosed) || c.answer == nil || c.err != nil {
		t.Errorf("%v, %v", c.answer, c.err)
	}
}

var later = time.Unix(1_800_000_000, 0)

func acquireItem() *quorleasev1.RequestItem {
	return &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{}}
}

func answerOf(seq uint64) []*quorleasev1.ResponseItem {
	return []*quorleasev1.ResponseItem{{Seq: seq}}
}
