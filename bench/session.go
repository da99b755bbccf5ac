package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// ItemsMax is how many items one Session message may carry.
const ItemsMax = 512

// ErrSessionEnded is what callers of a broken session get: their operation may
// have happened.
var ErrSessionEnded = errors.New("session ended: outcome unknown")

// Session multiplexes concurrent callers over one stream. A sender drains
// everybody who waits into one message.
type Session struct {
	stream grpc.BidiStreamingClient[quorleasev1.SessionRequest, quorleasev1.SessionResponse]
	cancel context.CancelFunc
	send   chan *quorleasev1.RequestItem
	joined sync.WaitGroup
	ended  chan struct{}

	mu      sync.Mutex
	next    uint64                                    // guarded by mu
	pending map[uint64]chan *quorleasev1.ResponseItem // guarded by mu; nil once ended
}

// OpenSession opens a stream and says hello.
func OpenSession(ctx context.Context, conn *grpc.ClientConn, client string) (*Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := quorleasev1.NewAdmissionClient(conn).Session(ctx)
	if err == nil {
		err = stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Hello{
			Hello: &quorleasev1.Hello{Client: client, SessionId: NewID()},
		}})
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open session: %w", err)
	}
	s := &Session{
		stream: stream, cancel: cancel, ended: make(chan struct{}),
		send:    make(chan *quorleasev1.RequestItem, 2*ItemsMax),
		pending: map[uint64]chan *quorleasev1.ResponseItem{},
	}
	s.joined.Add(2)
	go s.sendLoop()
	go s.receiveLoop()
	return s, nil
}

// Close ends the stream. Callers that wait get an error.
func (s *Session) Close() {
	s.cancel()
	s.joined.Wait()
}

// Call is one caller's way into a session. It is not for concurrent use.
type Call struct {
	session *Session
	answer  chan *quorleasev1.ResponseItem
}

// NewCall returns a reusable caller.
func (s *Session) NewCall() *Call {
	return &Call{session: s, answer: make(chan *quorleasev1.ResponseItem, 1)}
}

// Do sends one item (whose seq it sets) and waits for its answer.
func (c *Call) Do(ctx context.Context, item *quorleasev1.RequestItem) (*quorleasev1.ResponseItem, error) {
	s := c.session
	s.mu.Lock()
	if s.pending == nil {
		s.mu.Unlock()
		return nil, ErrSessionEnded
	}
	s.next++
	item.Seq = s.next
	s.pending[item.Seq] = c.answer
	s.mu.Unlock()
	select {
	case s.send <- item:
	case <-s.ended:
		return nil, ErrSessionEnded
	}
	select {
	case answer := <-c.answer:
		return answer, itemError(answer)
	case <-s.ended:
		return nil, ErrSessionEnded
	case <-ctx.Done():
		// The answer may still come: this caller's channel is spent.
		c.answer = make(chan *quorleasev1.ResponseItem, 1)
		return nil, ctx.Err()
	}
}

// Acquire is Do for an acquire.
func (c *Call) Acquire(ctx context.Context, request *quorleasev1.AcquireRequest) (*quorleasev1.AcquireResponse, error) {
	answer, err := c.Do(ctx, &quorleasev1.RequestItem{
		Operation: &quorleasev1.RequestItem_Acquire{Acquire: request},
	})
	if err != nil {
		return nil, err
	}
	return answer.GetAcquire(), nil
}

func itemError(answer *quorleasev1.ResponseItem) error {
	failure := answer.GetError()
	if failure == nil {
		return nil
	}
	return status.FromProto(failure).Err()
}

func (s *Session) sendLoop() {
	defer s.joined.Done()
	for {
		select {
		case first := <-s.send:
			items := []*quorleasev1.RequestItem{first}
			items = drain(s.send, items)
			err := s.stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Items{
				Items: &quorleasev1.RequestItems{Items: items},
			}})
			if err != nil {
				return
			}
		case <-s.ended:
			return
		}
	}
}

// drain takes what waits, up to the bound of a message.
func drain(from <-chan *quorleasev1.RequestItem, items []*quorleasev1.RequestItem) []*quorleasev1.RequestItem {
	for len(items) < ItemsMax {
		select {
		case item := <-from:
			items = append(items, item)
		default:
			return items
		}
	}
	return items
}

func (s *Session) receiveLoop() {
	defer s.joined.Done()
	defer s.end()
	for {
		message, err := s.stream.Recv()
		if err != nil {
			return
		}
		s.mu.Lock()
		for _, item := range message.GetItems().GetItems() {
			if waiter, ok := s.pending[item.GetSeq()]; ok {
				delete(s.pending, item.GetSeq())
				waiter <- item
			}
		}
		s.mu.Unlock()
	}
}

func (s *Session) end() {
	s.mu.Lock()
	s.pending = nil
	s.mu.Unlock()
	close(s.ended)
	s.cancel()
}

// NewID draws a lease or session id.
func NewID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(id[:])
}

// MayHaveHappened says whether an operation that failed with err could have
// had its effect: only these codes promise that it had none.
func MayHaveHappened(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.ResourceExhausted:
		return false
	default:
		return true
	}
}
