package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/codec/items"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// The patience that an item may name.
const (
	patienceMin = time.Microsecond
	patienceMax = time.Hour
)

// cancelSize is what a cancellation adds to a message, in bytes, at most.
const cancelSize = 16

// send sends what waits until the session ends.
func (s *Session) send() {
	defer s.joined.Done()
	for {
		select {
		case <-s.wake:
		case <-s.ended:
			return
		}
		for {
			// Whoever is about to ask may do so first. It costs one caller alone nothing,
			// and 128 of them get twice as much done, in fewer and larger messages.
			runtime.Gosched()
			items := s.take(time.Now())
			if len(items) == 0 {
				break
			}
			// A send that fails says only that the stream is over. The receiver learns why,
			// and ends the session.
			if s.stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Items{
				Items: &quorleasev1.RequestItems{Items: items},
			}}) != nil {
				s.cancel()
				return
			}
		}
	}
}

// take makes one message of what waits, as much as one may carry: first whom the
// node need not answer any more, which makes room for others.
func (s *Session) take(now time.Time) []*quorleasev1.RequestItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	// After the end both lists are empty.
	items := make([]*quorleasev1.RequestItem, 0, min(len(s.left)+len(s.queue), ItemsMax))
	items, size := s.takeLeft(items)
	// New ones for each message: gRPC's observers may look at one long after it was
	// sent, so nothing in it is used again.
	timeouts := make([]durationpb.Duration, cap(items)-len(items))
	n := 0
	for ; n < len(s.queue) && len(items) < ItemsMax; n++ {
		c := s.queue[n]
		if c.bounded && !c.deadline.After(now) {
			s.release(c)
			c.fail(errLate)
			continue
		}
		if size += c.size; size > BytesMax {
			break
		}
		c.state = sent
		c.item.Seq = c.seq
		c.item.Timeout = nil
		if c.bounded {
			patience := min(max(c.deadline.Sub(now), patienceMin), patienceMax)
			timeouts[0].Seconds, timeouts[0].Nanos = int64(patience/time.Second), int32(patience%time.Second)
			c.item.Timeout, timeouts = &timeouts[0], timeouts[1:]
		}
		items = append(items, c.item)
	}
	s.queue = shift(s.queue, n)
	return items
}

// errLate: the deadline passed in the queue.
var errLate = fmt.Errorf("%w: %w", ErrUnsent, context.DeadlineExceeded)

// takeLeft tells the node who has left.
func (s *Session) takeLeft(items []*quorleasev1.RequestItem) ([]*quorleasev1.RequestItem, int) {
	n := 0
	for ; n < len(s.left) && len(items) < ItemsMax; n++ {
		c := s.left[n]
		c.untold = false
		if c.state == finished {
			// It was answered meanwhile.
			s.release(c)
			continue
		}
		items = append(items, &quorleasev1.RequestItem{
			Seq: c.seq, Operation: &quorleasev1.RequestItem_Cancel{Cancel: &quorleasev1.CancelItem{}},
		})
	}
	s.left = shift(s.left, n)
	return items, cancelSize * len(items)
}

// shift drops the first n, and keeps the room that there is.
func shift(list []*call, n int) []*call {
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}

// receive hands answers out until the stream ends.
func (s *Session) receive() {
	defer s.joined.Done()
	var message items.Answers
	for {
		if err := s.stream.RecvMsg(&message); err != nil {
			if errors.Is(err, io.EOF) {
				err = errEnd
			}
			s.end(err)
			return
		}
		s.deliver(message.Items)
	}
}

// errEnd: a node ends a session without an error only when its client did.
var errEnd = errors.New("the node ended it")

// deliver hands out the answers of one message. One that nobody asked for is
// dropped.
func (s *Session) deliver(answers []*quorleasev1.ResponseItem) {
	s.answers.Add(uint64(len(answers)))
	s.mu.Lock()
	for _, answer := range answers {
		seq := answer.GetSeq()
		if seq >= uint64(len(s.calls)) {
			continue
		}
		c := s.calls[seq]
		if c == nil || c.state != sent && c.state != abandoned {
			continue
		}
		if !c.untold {
			s.release(c)
		}
		if c.resolve(answer, nil) {
			s.told = append(s.told, c)
		}
	}
	s.mu.Unlock()
	// Whoever hears of his answer asks again at once, and would wait for the lock.
	for _, c := range s.told {
		c.done <- struct{}{}
	}
	clear(s.told)
	s.told = s.told[:0]
}
