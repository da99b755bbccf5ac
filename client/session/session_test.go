package session_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/client/session"
)

func TestDoAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		node, _, conn := authority(t)
		s := begin(t, conn)
		answer, err := s.Do(t.Context(), acquire("free"))
		if err != nil || answer.GetAcquire().GetDecision() != quorleasev1.Decision_GRANTED {
			t.Errorf("acquire: %v, %v", answer, err)
		}
		if got := node.Last().GetAcquire().GetClient(); got != hello.Client {
			t.Errorf("counted for %q", got)
		}
		_, err = s.Do(t.Context(), acquire("absent"))
		if status.Code(err) != codes.NotFound || session.Reason(err) != "LIMIT_NOT_FOUND" || session.MayHaveHappened(err) {
			t.Errorf("unknown limit: %v", err)
		}
		if s.Answers() != 2 || s.Err() != nil || s.Conn() != conn {
			t.Errorf("%d answers, %v", s.Answers(), s.Err())
		}
	})
}

// What keeps no record and waits in no queue is answered in the process, where somebody does
// that; everything else goes over the stream.
func TestDirect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		node, _, conn := authority(t)
		var direct []string
		own := hello
		own.Direct = func(ctx context.Context, r *quorleasev1.AcquireRequest) (*quorleasev1.AcquireResponse, error) {
			limit := r.GetCharges()[0].GetLimit()
			direct = append(direct, limit)
			if limit == "slow" {
				<-ctx.Done()
				return nil, status.Error(codes.DeadlineExceeded, "too late")
			}
			if limit != "free" {
				return nil, status.Error(codes.NotFound, limit)
			}
			return &quorleasev1.AcquireResponse{Decision: quorleasev1.Decision_GRANTED}, nil
		}
		s, err := session.Open(t.Context(), conn, own)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if answer, err := s.Do(t.Context(), acquire("free")); err != nil ||
			answer.GetAcquire().GetDecision() != quorleasev1.Decision_GRANTED || s.Answers() != 1 {
			t.Errorf("%v, %v, %d answers", answer, err, s.Answers())
		}
		if _, err := s.Do(t.Context(), acquire("absent")); status.Code(err) != codes.NotFound {
			t.Errorf("absent: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Do(ctx, acquire("slow")); !errors.Is(err, context.DeadlineExceeded) ||
			!session.MayHaveHappened(err) {
			t.Errorf("slow: %v, want that it may have happened", err)
		}
		if node.Last() != nil {
			t.Errorf("the node has heard of %v", node.Last())
		}
		tracked, waits := acquire("free"), acquire("free")
		tracked.GetAcquire().Track = true
		tracked.GetAcquire().LeaseId = hello.SessionID
		waits.GetAcquire().MaxWait = durationpb.New(time.Second)
		for _, item := range []*quorleasev1.RequestItem{tracked, waits} {
			if _, err := s.Do(t.Context(), item); err != nil || node.Last() == nil {
				t.Errorf("%v: %v, the node has heard of %v", item, err, node.Last())
			}
		}
		if got := strings.Join(direct, " "); got != "free absent slow" {
			t.Errorf("answered in the process: %s", got)
		}
	})
}

// What would end the session for everybody, or never be answered, is not sent.
func TestDoRefusesWhatCantBeSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		node, _, conn := authority(t)
		s := begin(t, conn)
		large := acquire("free")
		large.GetAcquire().Charges[0].Key = strings.Repeat("k", session.BytesMax)
		cancelItem := &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Cancel{}}
		for name, c := range map[string]struct {
			item *quorleasev1.RequestItem
			late bool
			want string
		}{
			"nothing":   {&quorleasev1.RequestItem{}, false, "operation: must be"},
			"a cancel":  {cancelItem, false, "operation: must be"},
			"too large": {large, false, "more than 262144"},
			"too late":  {acquire("free"), true, "context canceled"},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if c.late {
				cancel()
			}
			_, err := s.Do(ctx, c.item)
			if !errors.Is(err, session.ErrUnsent) || session.MayHaveHappened(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		if n, _, _ := node.Counts(); n != 0 || s.Err() != nil {
			t.Errorf("%d arrived; the session: %v", n, s.Err())
		}
	})
}

// G8: nobody waits longer than he said, and the node need not go on without him.
func TestDoEndsWithItsContext(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			node, _, conn := authority(t)
			s := begin(t, conn)
			node.Hold()
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
			defer cancel()
			started := time.Now()
			_, err := s.Do(ctx, acquire("free"))
			if !errors.Is(err, context.DeadlineExceeded) || !session.MayHaveHappened(err) {
				t.Errorf("held: %v", err)
			}
			if took := time.Since(started); took != 70*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			synctest.Wait()
			if _, held, cancelled := node.Counts(); held != 0 || cancelled != 1 {
				t.Errorf("%d held, %d cancelled", held, cancelled)
			}
			node.Resume()
			if _, err := s.Do(t.Context(), acquire("free")); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	})
}

// The node learns how long each caller waits.
func TestDoSendsTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := make(chan *quorleasev1.RequestItem, 3)
		s := begin(t, scripted(t, func(stream serverStream) error {
			return each(stream, func(item *quorleasev1.RequestItem) error {
				seen <- item
				return stream.Send(answers(&quorleasev1.ResponseItem{Seq: item.GetSeq()}))
			})
		}))
		for _, c := range []struct{ patience, want time.Duration }{
			{0, 0}, {time.Second, time.Second}, {3 * time.Hour, time.Hour},
		} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if c.patience > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.patience)
			}
			if _, err := s.Do(ctx, acquire("a")); err != nil {
				t.Error(err)
			}
			cancel()
			if item := <-seen; item.GetTimeout().AsDuration() != c.want || (item.Timeout != nil) != (c.patience > 0) {
				t.Errorf("patience %v: sent %v", c.patience, item.GetTimeout())
			}
		}
	})
}

// Whatever a node said last: what it has not answered is unknown, and what was
// never sent did not happen.
func TestDoWhenTheSessionEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		node, srv, conn := authority(t)
		s := begin(t, conn)
		node.Hold()
		var joined sync.WaitGroup
		for range 3 {
			joined.Go(func() {
				_, err := s.Do(t.Context(), acquire("free"))
				if !errors.Is(err, session.ErrEnded) || errors.Is(err, session.ErrUnsent) || !session.MayHaveHappened(err) {
					t.Errorf("under way: %v", err)
				}
			})
		}
		synctest.Wait()
		_ = srv.Close() // it gives up draining, because the node answers nothing
		joined.Wait()
		<-s.Ended()
		_, err := s.Do(t.Context(), acquire("free"))
		if !errors.Is(err, session.ErrEnded) || session.MayHaveHappened(err) || s.Err() == nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		node, _, conn := authority(t)
		s := begin(t, conn)
		node.Hold()
		var joined sync.WaitGroup
		joined.Go(func() {
			if _, err := s.Do(t.Context(), acquire("free")); !errors.Is(err, session.ErrEnded) {
				t.Errorf("under way: %v", err)
			}
		})
		synctest.Wait()
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		joined.Wait()
		synctest.Wait()
		if _, held, cancelled := node.Counts(); held != 0 || cancelled != 1 {
			t.Errorf("%d held, %d cancelled", held, cancelled)
		}
	})
}

// A draining node answers what it has and says why it ends.
func TestSessionOnADrainingNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, srv, conn := authority(t)
		s := begin(t, conn)
		srv.Drain()
		<-s.Ended()
		if session.Reason(s.Err()) != "SHUTTING_DOWN" || !session.MayHaveHappened(s.Err()) {
			t.Errorf("it ended with %v", s.Err())
		}
	})
}

func TestOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, _, conn := authority(t)
		_, err := session.Open(t.Context(), conn, session.Hello{Client: "c", SessionID: "me"})
		if session.Reason(err) != "BAD_FIELD" {
			t.Errorf("a bad hello: %v", err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := session.Open(over, conn, hello); !errors.Is(err, context.Canceled) {
			t.Errorf("too late: %v", err)
		}
		// The session outlives the context that it was opened with.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s, err := session.Open(ctx, conn, hello)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		<-ctx.Done()
		synctest.Wait()
		if _, err := s.Do(t.Context(), acquire("free")); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// A node that takes the connection and then says nothing holds nobody up.
func TestOpenOnAHungNode(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			conn := silent(t)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			started := time.Now()
			_, err := session.Open(ctx, conn, hello)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != 300*time.Millisecond {
				t.Errorf("after %v: %v", time.Since(started), err)
			}
		})
	})
}

// The table of errors says which may have happened; this package agrees with it
// row by row. Without a reason the error is not a node's own, and unknown.
func TestMayHaveHappenedAgreesWithTheTable(t *testing.T) {
	for _, row := range server.Causes() {
		err := (&server.Error{Cause: row, Message: row.Name}).GRPCStatus().Err()
		if got, want := session.MayHaveHappened(err), row.MayHaveHappened || row.Reason == ""; got != want {
			t.Errorf("%s: %v, want %v", row.Name, got, want)
		}
		if got := session.Reason(err); got != row.Reason {
			t.Errorf("%s: reason %q, want %q", row.Name, got, row.Reason)
		}
	}
	if session.MayHaveHappened(nil) || session.Reason(nil) != "" {
		t.Error("an answer is no error")
	}
}

type serverStream = grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse]
