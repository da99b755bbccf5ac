package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/session"
)

// each calls f for every item that comes.
func each(stream serverStream, f func(*quorleasev1.RequestItem) error) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, item := range message.GetItems().GetItems() {
			if err := f(item); err != nil {
				return err
			}
		}
	}
}

// silent is a connection to a node that takes bytes and says nothing.
func silent(t *testing.T) *grpc.ClientConn {
	t.Helper()
	var joined sync.WaitGroup
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			near, far := net.Pipe()
			joined.Go(func() {
				buffer := make([]byte, 1<<10)
				for {
					if _, err := far.Read(buffer); err != nil {
						return
					}
				}
			})
			return near, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		joined.Wait()
	})
	return conn
}

// A caller that left keeps its seq until its answer came: an answer that is late
// reaches nobody else.
func TestLateAnswersReachNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		items := make(chan *quorleasev1.RequestItem, 9)
		reply := make(chan *quorleasev1.ResponseItem)
		s := begin(t, scripted(t, func(stream serverStream) error {
			var joined sync.WaitGroup
			defer joined.Wait()
			joined.Go(func() {
				for {
					select {
					case r := <-reply:
						_ = stream.Send(answers(r))
					case <-stream.Context().Done():
						return
					}
				}
			})
			return each(stream, func(item *quorleasev1.RequestItem) error {
				items <- item
				return nil
			})
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Do(ctx, acquire("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		first, told := <-items, <-items
		if _, ok := told.GetOperation().(*quorleasev1.RequestItem_Cancel); !ok || told.GetSeq() != first.GetSeq() {
			t.Fatalf("the node was told %v", told)
		}
		got := make(chan string, 1)
		go func() {
			answer, err := s.Do(t.Context(), acquire("a"))
			got <- fmt.Sprint(answer.GetAcquire().GetLease().GetId(), err)
		}()
		second := <-items
		if second.GetSeq() == first.GetSeq() {
			t.Fatalf("seq %d is in use", first.GetSeq())
		}
		reply <- named(first.GetSeq(), "late")
		reply <- named(1000, "nobody's")
		reply <- named(second.GetSeq(), "right")
		if text := <-got; text != "right<nil>" {
			t.Errorf("got %q", text)
		}
		// Both are free again, the first one too.
		for range 2 {
			go func() { _, _ = s.Do(t.Context(), acquire("a")) }()
			if again := <-items; again.GetSeq() != first.GetSeq() && again.GetSeq() != second.GetSeq() {
				t.Errorf("seq %d is a new one", again.GetSeq())
			}
		}
		s.Close()
	})
}

func named(seq uint64, id string) *quorleasev1.ResponseItem {
	return &quorleasev1.ResponseItem{Seq: seq, Answer: &quorleasev1.ResponseItem_Acquire{
		Acquire: &quorleasev1.AcquireResponse{Lease: &quorleasev1.Lease{Id: id}},
	}}
}

// Callers that leave at any moment never get, or lose, another's answer.
func TestEveryAnswerIsItsCallers(t *testing.T) {
	t.Parallel()
	s := begin(t, scripted(t, func(stream serverStream) error {
		// In any order, as a node does.
		for {
			message, err := stream.Recv()
			if err != nil {
				return err
			}
			var out []*quorleasev1.ResponseItem
			for _, item := range message.GetItems().GetItems() {
				if r := item.GetAcquire(); r != nil {
					out = append(out, named(item.GetSeq(), r.GetLeaseId()))
				}
			}
			rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			if err := stream.Send(answers(out...)); err != nil {
				return err
			}
		}
	}))
	var joined sync.WaitGroup
	for caller := range 64 {
		joined.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(2*time.Millisecond))))
				if n%2 == 0 {
					ctx = t.Context()
				}
				item, id := acquire("a"), fmt.Sprintf("%d/%d", caller, n)
				item.GetAcquire().LeaseId = id
				answer, err := s.Do(ctx, item)
				cancel()
				if err == nil && answer.GetAcquire().GetLease().GetId() != id ||
					err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v, %v", id, answer, err)
				}
			}
		})
	}
	joined.Wait()
}

// However many wait, no message is larger than a node takes; and what waits goes
// together.
func TestMessagesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		open := make(chan struct{})
		messages, largest, bytes := 0, 0, 0
		s := begin(t, scripted(t, func(stream serverStream) error {
			<-open
			for {
				message, err := stream.Recv()
				if err != nil {
					return err
				}
				messages++
				size := 0
				var out []*quorleasev1.ResponseItem
				for _, item := range message.GetItems().GetItems() {
					size += item.SizeVT()
					out = append(out, &quorleasev1.ResponseItem{Seq: item.GetSeq()})
				}
				largest, bytes = max(largest, len(out)), max(bytes, size)
				if err := stream.Send(answers(out...)); err != nil {
					return err
				}
			}
		}))
		var joined sync.WaitGroup
		const small, large = 3000, 1000
		for i := range small + large {
			joined.Go(func() {
				item := acquire("a")
				if i < large {
					item.GetAcquire().Charges[0].Key = strings.Repeat("k", 2000)
				}
				if _, err := s.Do(t.Context(), item); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(open)
		joined.Wait()
		if largest > session.ItemsMax || bytes > session.BytesMax || messages > 60 {
			t.Errorf("%d messages, of up to %d items and %d bytes", messages, largest, bytes)
		}
	})
}

// A node that stopped reading: those who leave before they were sent take nothing
// with them, and did not happen.
func TestLeavingTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := begin(t, scripted(t, func(stream serverStream) error {
			<-stream.Context().Done()
			return nil
		}))
		var joined sync.WaitGroup
		var mu sync.Mutex
		unsent := 0
		for i := range 2000 {
			joined.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Millisecond)
				defer cancel()
				item := acquire("a")
				item.GetAcquire().Charges[0].Key = strings.Repeat("k", 2000)
				_, err := s.Do(ctx, item)
				if !errors.Is(err, context.DeadlineExceeded) || session.MayHaveHappened(err) == errors.Is(err, session.ErrUnsent) {
					t.Error(err)
				}
				if errors.Is(err, session.ErrUnsent) {
					mu.Lock()
					unsent++
					mu.Unlock()
				}
			})
		}
		joined.Wait()
		if unsent < 1000 || unsent == 2000 {
			t.Errorf("%d of 2000 were not sent", unsent)
		}
	})
}
