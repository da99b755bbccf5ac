// Package session carries the operations of many callers over one stream.
//
// Callers put their items into one queue; one goroutine sends all that waits as
// one message, another one hands answers out. Nothing is started for a call. The
// busier a session is, the fewer and larger are its messages.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/api/codec"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Bounds that a node sets: what breaks them ends the session for everybody, so
// nothing that does is sent.
const (
	// ItemsMax is how many items one message may carry.
	ItemsMax = 512
	// BytesMax is how large all items of one message may be together, in bytes.
	BytesMax = 256 << 10
)

// CallersMax is how many operations may be under way on one session, those whose
// callers left before their answers came included. A node has at most 8192 open;
// the rest waits in buffers and in the queue. At about 200 bytes each this bounds
// what a node that stopped answering can make a client hold (G10).
const CallersMax = 32768

// itemSlack is what seq, timeout and the field's own header add to the size of an
// item as its caller made it, in bytes, rounded up.
const itemSlack = 40

// Hello says who opens a session.
type Hello struct {
	// Client is who the work of items is for that name no client, at most 256
	// bytes.
	Client string
	// SessionID is 32 lower-case hex digits, drawn by the process when it started.
	SessionID string
	// Connection is higher than those of the session's streams before: the end of the
	// last one ends what is tied to the session. 0: there is one.
	Connection uint64
	// Direct, where it is not nil, answers what needs no stream.
	Direct Direct
}

// Direct answers an acquire that keeps no record and waits in no queue, in the process of the
// one who asks. The error has a gRPC status, as that of a unary call. It is called from any
// goroutine and returns soon after ctx ends; nothing of the answer may be changed later.
type Direct func(ctx context.Context, r *quorleasev1.AcquireRequest) (*quorleasev1.AcquireResponse, error)

// Session is one open stream. It is safe for concurrent use.
type Session struct {
	conn   *grpc.ClientConn
	number uint64
	direct Direct
	stream grpc.BidiStreamingClient[quorleasev1.SessionRequest, quorleasev1.SessionResponse]
	// cancel ends the stream.
	cancel context.CancelFunc
	// wake has room for one signal: there is something to send.
	wake chan struct{}
	// ended is closed when nobody waits any more.
	ended  chan struct{}
	joined sync.WaitGroup
	// answers counts answers that came.
	answers atomic.Uint64
	// told are those whose answers came in the message that is being handed out. They
	// are the receiver's.
	told []*call
	// pool keeps calls that are over. It is the session's own: what a channel belongs
	// to in a test's bubble must not get out of it.
	pool sync.Pool

	mu sync.Mutex
	// calls are the operations under way, by seq: a seq is a place in this table, so
	// that it is short on the wire and found without a map. free are places that
	// hold nothing.
	calls []*call
	free  []uint64
	// queue are those that are not sent, in their order; left are those that were
	// sent and whose callers are gone, of which the node is not told yet.
	queue, left []*call
	// err is why the session ended, nil while it goes on.
	err error
}

// Open opens a session on a connection and waits until the node has accepted it.
// ctx bounds the opening only, not the session's life. The connection stays the
// caller's, who closes the session first.
func Open(ctx context.Context, conn *grpc.ClientConn, hello Hello) (*Session, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	stream, err := open(life, conn, hello)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("open session: %w", err)
	}
	s := &Session{
		conn: conn, number: hello.Connection, direct: hello.Direct, stream: stream, cancel: cancel,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.joined.Add(2)
	go s.send()
	go s.receive()
	return s, nil
}

func open(
	ctx context.Context, conn *grpc.ClientConn, hello Hello,
) (grpc.BidiStreamingClient[quorleasev1.SessionRequest, quorleasev1.SessionResponse], error) {
	stream, err := quorleasev1.NewAdmissionClient(conn).Session(ctx, grpc.ForceCodecV2(codec.New()))
	if err != nil {
		return nil, err
	}
	// A send that fails says only that the stream is over; receiving says why.
	_ = stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Hello{
		Hello: &quorleasev1.Hello{
			Client: hello.Client, SessionId: hello.SessionID, Connection: hello.Connection,
		},
	}})
	// A node sends headers when it has accepted the hello. One that refuses it ends
	// the stream instead, which shows as headers that are not there.
	header, err := stream.Header()
	if err == nil && header == nil {
		_, err = stream.Recv()
	}
	return stream, err
}

// Conn is the connection that the session is on, for unary calls.
func (s *Session) Conn() *grpc.ClientConn { return s.conn }

// Connection is the number that it was opened with.
func (s *Session) Connection() uint64 { return s.number }

// Ended is closed when the session is over.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Err is why the session is over: it wraps ErrEnded. Nil while it goes on.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Answers is how many answers came. Where it grows the node is alive.
func (s *Session) Answers() uint64 { return s.answers.Load() }

// Close ends the session and waits for its goroutines. Callers that still wait get
// ErrEnded. It is idempotent.
func (s *Session) Close() error {
	s.end(errClosed)
	s.joined.Wait()
	return nil
}

var errClosed = errors.New("closed by this process")

// Do sends one operation and waits for its answer, or until ctx ends. Either the
// answer is returned or an error: of this package, of ctx, or the status that the
// node answered with. MayHaveHappened tells of any of them whether the operation
// may have had its effect.
//
// It sets item's seq, and its timeout from ctx's deadline; where ctx has none the
// node keeps its own, 2 s. After an error the session may still read item, which
// must not be changed from then on. When ctx ends the node is told in the
// background, so that it need not go on.
func (s *Session) Do(ctx context.Context, item *quorleasev1.RequestItem) (*quorleasev1.ResponseItem, error) {
	switch item.GetOperation().(type) {
	case nil, *quorleasev1.RequestItem_Cancel:
		return nil, fmt.Errorf("%w: operation: must be acquire, settle, release, renew or peek", ErrUnsent)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	size := item.SizeVT() + itemSlack
	if size > BytesMax {
		return nil, fmt.Errorf("%w: an item of %d bytes, more than %d", ErrUnsent, size, BytesMax)
	}
	if r := item.GetAcquire(); s.direct != nil && r != nil && !r.GetTrack() && r.GetMaxWait() == nil {
		return s.ask(ctx, r)
	}
	c := s.fresh()
	c.item, c.size = item, size
	c.deadline, c.bounded = ctx.Deadline()
	if err := s.enqueue(c); err != nil {
		s.recycle(c)
		return nil, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if !s.leave(c, ctx.Err()) {
			// It is the session's now, until the answer comes.
			return nil, ctx.Err()
		}
		<-c.done
	}
	answer, err := c.answer, c.err
	s.recycle(c)
	if err != nil {
		return nil, err
	}
	return answer, itemError(answer)
}

// ask has an acquire answered in this process. What ends the session ends nothing of that.
func (s *Session) ask(ctx context.Context, r *quorleasev1.AcquireRequest) (*quorleasev1.ResponseItem, error) {
	answer, err := s.direct(ctx, r)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		// As on a stream: what became of it is unknown.
		return nil, ctx.Err()
	default:
		return nil, err
	}
	s.answers.Add(1)
	return &quorleasev1.ResponseItem{Answer: &quorleasev1.ResponseItem_Acquire{Acquire: answer}}, nil
}

// fresh is a call that nobody else knows of.
func (s *Session) fresh() *call {
	if c, ok := s.pool.Get().(*call); ok {
		return c
	}
	return &call{done: make(chan struct{}, 1)}
}

// recycle keeps a call for another caller. Nobody else may know of it any more.
func (s *Session) recycle(c *call) {
	*c = call{done: c.done}
	s.pool.Put(c)
}

// enqueue takes a call in and gives it a seq.
func (s *Session) enqueue(c *call) error {
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnsent, s.err)
	}
	switch n := len(s.free); {
	case n > 0:
		c.seq = s.free[n-1]
		s.free = s.free[:n-1]
		s.calls[c.seq] = c
	case len(s.calls) < CallersMax:
		c.seq = uint64(len(s.calls))
		s.calls = append(s.calls, c)
	default:
		s.mu.Unlock()
		return fmt.Errorf("%w: %d operations are under way, none more is taken", ErrUnsent, CallersMax)
	}
	s.queue = append(s.queue, c)
	s.mu.Unlock()
	s.signal()
	return nil
}

func (s *Session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// leave says that a caller does not wait any more. It says yes where the call is
// over, or is over by that: its outcome is in c.
func (s *Session) leave(c *call, why error) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.state {
	case finished:
		return true
	case queued:
		// Nobody will send it: what is not sent did not happen.
		i := slices.Index(s.queue, c)
		s.queue = slices.Delete(s.queue, i, i+1)
		s.release(c)
		c.fail(fmt.Errorf("%w: %w", ErrUnsent, why))
		return true
	case sent, abandoned:
	}
	c.state, c.untold = abandoned, true
	s.left = append(s.left, c)
	s.signal()
	return false
}

// release gives a call's seq back.
func (s *Session) release(c *call) {
	s.calls[c.seq] = nil
	s.free = append(s.free, c.seq)
}

// end ends the session for everybody, once.
func (s *Session) end(why error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = fmt.Errorf("%w: %w", ErrEnded, why)
	unsent := fmt.Errorf("%w: %w", ErrUnsent, s.err)
	for _, c := range s.calls {
		switch {
		case c == nil:
		case c.state == queued:
			c.fail(unsent)
		default:
			c.fail(s.err)
		}
	}
	s.calls, s.free, s.queue, s.left = nil, nil, nil, nil
	s.mu.Unlock()
	close(s.ended)
	s.cancel()
}
