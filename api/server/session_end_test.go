package server

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorlease/quorlease/api/codec/items"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/servertest"
)

// saying is the stream of a client that has said all there is.
type saying struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // as a stream has it
	said []*quorleasev1.SessionRequest
}

func (s *saying) Context() context.Context                { return s.ctx }
func (s *saying) SendHeader(metadata.MD) error            { return nil }
func (s *saying) SendMsg(any) error                       { return nil }
func (s *saying) Send(*quorleasev1.SessionResponse) error { return errors.ErrUnsupported }
func (s *saying) Recv() (*quorleasev1.SessionRequest, error) {
	return nil, errors.ErrUnsupported
}

func (s *saying) RecvMsg(to any) error {
	if len(s.said) == 0 {
		return io.EOF
	}
	said := s.said[0]
	s.said = s.said[1:]
	return arrive(said, to)
}

// arrive is a message as it is received.
func arrive(said *quorleasev1.SessionRequest, to any) error {
	wire, err := said.MarshalVT()
	if err != nil {
		return err
	}
	to.(*items.Requests).Reset()
	return to.(*items.Requests).UnmarshalVT(wire)
}

func carrying(list ...*quorleasev1.RequestItem) *quorleasev1.SessionRequest {
	return &quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Items{
		Items: &quorleasev1.RequestItems{Items: list},
	}}
}

// ended is a session whose stream ended before its client was read.
func ended(t *testing.T, hello *quorleasev1.Hello) (*servertest.Node, *session) {
	t.Helper()
	node := servertest.New()
	config := DefaultConfig()
	config.Node, config.Events = node, node.Ring
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s := newSession(server, &saying{ctx: t.Context(), said: []*quorleasev1.SessionRequest{
		{Kind: &quorleasev1.SessionRequest_Hello{Hello: hello}},
	}})
	s.abandon()
	return node, s
}

func greeting(connection uint64) *quorleasev1.Hello {
	return &quorleasev1.Hello{
		Client: "c", SessionId: "00112233445566778899aabbccddeeff", Connection: connection,
	}
}

// A client that comes back and goes at once leaves no session that is taken for
// one that is there (A13).
func TestA13SessionThatComesBackAndGoes(t *testing.T) {
	t.Parallel()
	node, s := ended(t, greeting(2))
	if err := s.receive(); err == nil {
		t.Error("a session went on that had ended")
	}
	if last := node.Last().GetEndSession(); last == nil || last.GetResumed() {
		t.Errorf("the last that the cluster heard of the session is %v, want its end", node.Last())
	}
}

// What is read of a session that has ended takes no memory from the others (G10).
func TestG10SessionThatEndedHoldsNothing(t *testing.T) {
	t.Parallel()
	_, s := ended(t, greeting(1))
	_ = s.receive()
	for seq, operation := range []*quorleasev1.RequestItem{
		{Operation: &quorleasev1.RequestItem_Peek{Peek: &quorleasev1.PeekRequest{Charges: oneCharge()}}},
		{Operation: &quorleasev1.RequestItem_Acquire{Acquire: &quorleasev1.AcquireRequest{Charges: oneCharge()}}},
		{},
	} {
		operation.Seq = uint64(seq)
		s.begin(time.Now(), 0, operation, itemOverhead)
		if held := s.server.itemBytes.Load(); held != 0 {
			t.Errorf("%v: %d bytes are held", operation, held)
		}
	}
}

func oneCharge() []*quorleasev1.Charge {
	return []*quorleasev1.Charge{{Limit: "absent", Dimension: "requests", Amount: 1}}
}

// An acquire that is being expanded again can be cancelled, and is when the node has
// it: not before.
func TestSessionCancelsWhatTheNodeIsAboutToGet(t *testing.T) {
	t.Parallel()
	node, s := ended(t, greeting(1))
	s.over = false
	node.Hold()
	it := &item{session: s, seq: 7}
	it.pending.Operation = &logv1.Operation{}
	it.pending.Done = func(r *logv1.Result, err error) { s.done(it, r, err) }
	s.register(it)
	s.cancel(it.seq)
	if _, _, cancelled := node.Counts(); cancelled != 0 {
		t.Errorf("the node was told to cancel what it had not got, %d times", cancelled)
	}
	node.Submit(&it.pending)
	s.submitted(it)
	if _, held, cancelled := node.Counts(); cancelled != 1 || held != 0 {
		t.Errorf("%d times cancelled, %d held", cancelled, held)
	}
}

// Items beyond the bound are answered so, and those answers take memory too: a client
// that reads none of them is not read (G10).
func TestG10UnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, s := ended(t, greeting(1))
		_ = s.receive()
		s.over = false
		const most = 1 << 20
		s.server.config.SessionBytesMax = most
		one := &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{
			Acquire: &quorleasev1.AcquireRequest{Charges: oneCharge()},
		}}
		accepted := make(chan struct{})
		go func() {
			defer close(accepted)
			var message items.Requests
			for arrive(carrying(one), &message) == nil && s.accept(&message) == nil {
				one.Seq++
			}
		}()
		synctest.Wait()
		if held := s.server.itemBytes.Load(); held < most || held > 2*most+4096 {
			t.Errorf("%d bytes are held, want some more than %d", held, most)
		}
		// What is read makes room.
		before := one.GetSeq()
		s.mu.Lock()
		unsent := s.ready
		s.ready = nil
		s.mu.Unlock()
		for _, it := range unsent {
			s.sent(1, it.cost)
		}
		synctest.Wait()
		if one.GetSeq() == before {
			t.Error("nothing more is read")
		}
		s.abandon()
		<-accepted
		if held := s.server.itemBytes.Load(); held != 0 {
			t.Errorf("%d bytes are held in the end", held)
		}
	})
}

// deaf is the stream of a client that asks and takes no answer.
type deaf struct {
	saying
	asks int
}

func (d *deaf) RecvMsg(to any) error {
	if len(d.said) > 0 {
		return d.saying.RecvMsg(to)
	}
	if d.asks--; d.asks < 0 {
		<-d.ctx.Done()
		return d.ctx.Err()
	}
	return arrive(carrying(&quorleasev1.RequestItem{Seq: uint64(d.asks)}), to)
}

func (d *deaf) SendMsg(any) error {
	<-d.ctx.Done()
	return d.ctx.Err()
}

// A client that takes no answers is not kept for ever, with what it holds (G10).
func TestG10ClientThatTakesNoAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, s := ended(t, greeting(1))
		ctx, over := context.WithCancel(t.Context())
		began := time.Now()
		err := (&admission{server: s.server}).Session(&deaf{asks: 100, saying: saying{
			ctx: ctx, said: []*quorleasev1.SessionRequest{{Kind: &quorleasev1.SessionRequest_Hello{Hello: greeting(2)}}},
		}})
		if took := time.Since(began); !errors.Is(err, errStalled) || took != sendWithin {
			t.Errorf("%v after %s, want that it stalled after %s", err, took, sendWithin)
		}
		// As gRPC does when a call has ended.
		over()
		s.server.joined.Wait()
		if held := s.server.itemBytes.Load(); held != 0 {
			t.Errorf("%d bytes are held in the end", held)
		}
	})
}
