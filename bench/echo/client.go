package echo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
)

// itemsMost is how many items travel in one message, as in a session.
const itemsMost = 512

// ErrEnded: the stream is gone.
var ErrEnded = errors.New("echo stream ended")

// Unary asks one item in a call of its own.
func Unary(ctx context.Context, conn *grpc.ClientConn, item *Item) error {
	var answer Batch
	if err := conn.Invoke(ctx, unaryMethod, &Batch{Items: []Item{*item}}, &answer); err != nil {
		return err
	}
	if len(answer.Items) != 1 || answer.Items[0] != *item {
		return fmt.Errorf("echo: %d items, or another one", len(answer.Items))
	}
	return nil
}

// Stream carries many callers: whoever waits when the sender is free goes into
// one message.
type Stream struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
	send   chan Item
	ended  chan struct{}
	joined sync.WaitGroup

	mu      sync.Mutex
	callers []*Caller // guarded by mu; an item's seq is the index
}

// Open opens a stream. ctx bounds its life.
func Open(ctx context.Context, conn *grpc.ClientConn) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := conn.NewStream(ctx, &many, manyMethod)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open echo stream: %w", err)
	}
	s := &Stream{stream: stream, cancel: cancel, send: make(chan Item, 2*itemsMost), ended: make(chan struct{})}
	s.joined.Go(s.sendAll)
	s.joined.Go(s.receiveAll)
	return s, nil
}

// Close ends the stream and waits for its goroutines.
func (s *Stream) Close() {
	s.cancel()
	s.joined.Wait()
}

// Caller has one item under way at most. It is for one goroutine.
type Caller struct {
	stream *Stream
	seq    uint64
	answer chan Item
}

// NewCaller adds a caller.
func (s *Stream) NewCaller() *Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Caller{stream: s, seq: uint64(len(s.callers)), answer: make(chan Item, 1)}
	s.callers = append(s.callers, c)
	return c
}

// Do asks one item and waits for its answer. After an error of ctx the caller is
// spent.
func (c *Caller) Do(ctx context.Context, item Item) error {
	item.Seq = c.seq
	select {
	case c.stream.send <- item:
	case <-c.stream.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case answer := <-c.answer:
		if answer != item {
			return fmt.Errorf("echo: item %d came back changed", c.seq)
		}
		return nil
	case <-c.stream.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Stream) sendAll() {
	batch := &Batch{Items: make([]Item, 0, itemsMost)}
	for {
		select {
		case first := <-s.send:
			batch.Items = append(batch.Items[:0], first)
			for more := true; more && len(batch.Items) < itemsMost; {
				select {
				case item := <-s.send:
					batch.Items = append(batch.Items, item)
				default:
					more = false
				}
			}
			// Encoded before it returns: the batch is free again.
			if s.stream.SendMsg(batch) != nil {
				return
			}
		case <-s.ended:
			return
		}
	}
}

func (s *Stream) receiveAll() {
	defer s.cancel()
	defer close(s.ended)
	batch := &Batch{}
	for {
		if err := s.stream.RecvMsg(batch); err != nil {
			return
		}
		s.mu.Lock()
		for _, item := range batch.Items {
			if item.Seq < uint64(len(s.callers)) {
				s.callers[item.Seq].answer <- item
			}
		}
		s.mu.Unlock()
	}
}
